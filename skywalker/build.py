"""How this skywalker was built: whether its hot modules are compiled, and whether assertions are checked.

It has a .pxd, and so is one of them: what holds for it holds for all.
"""

from __future__ import annotations

from typing import Final

COMPILED: Final = not __file__.endswith(".py")
"""False where there was no compiler: clients do without, at a lower speed, and there is no server."""

HOW: Final = (
    "install a C compiler and Python's headers, on Debian gcc and python3-dev, and then skywalker again; "
    "or a wheel that `make wheel` has made elsewhere"
)
"""How to get what is compiled."""


def _checks() -> bool:
    checked = False
    assert (checked := True)  # noqa: RUF018  # the only one that does something
    return checked


ASSERTIONS: Final = _checks()
"""False for a release, and for plain files under `python -O`."""


def described() -> str:
    """Return both in a few words."""
    return f"{'compiled' if COMPILED else 'plain Python'}{', with assertions' if ASSERTIONS else ''}"
