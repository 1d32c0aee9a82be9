"""Whether what the admin server is built on is installed. Loads none of it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

NEEDED: Final = ("starlette", "uvicorn", "prometheus_client", "psutil")


def missing() -> list[str]:
    """Return the names of the packages that are not there."""
    return [name for name in NEEDED if find_spec(name) is None]
