# Made by 'make faces' from skywalker/clients/aio/local.py; do not edit.

"""A junction within one process: for tests, and for programs that need no node yet."""

from __future__ import annotations

from skywalker.clients.blocking.driver import Driver
from skywalker.clients.blocking.junction import Junction
from skywalker.clients.bus import Bus


class LocalJunction(Junction):
    """Behaves as a client of a node that only this object can reach."""

    def __init__(self) -> None:
        super().__init__(Driver(Bus()))
