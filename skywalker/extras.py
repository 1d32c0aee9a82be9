"""Packages that a part of skywalker needs and that are not always installed. Loads none of them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Final

ADMIN: Final = ("starlette", "anyio", "uvicorn", "h11", "prometheus_client", "psutil")
"""What the admin server imports, by itself or by what it imports."""


CERTS: Final = ("cryptography",)
"""What certificates are made with."""


def missing(packages: Iterable[str]) -> list[str]:
    """Return the names of those that are not there."""
    return [name for name in packages if find_spec(name) is None]
