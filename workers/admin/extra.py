"""Whether what the admin server is built on is installed. Loads none of it."""

from __future__ import annotations

from skywalker import extras


def missing() -> list[str]:
    """Return the names of the packages that are not there."""
    return extras.missing(extras.ADMIN)
