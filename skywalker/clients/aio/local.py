"""A junction within one process: for tests, and for programs that need no node yet."""

from __future__ import annotations

from skywalker.clients.aio.driver import Driver
from skywalker.clients.aio.junction import Junction
from skywalker.clients.bus import Bus


class LocalJunction(Junction):
    """Behaves as a client of a node that only this object can reach. Make it while its event loop runs."""

    def __init__(self) -> None:
        super().__init__(Driver(Bus()))
