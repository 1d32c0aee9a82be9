"""A junction within one process, for threads: for tests, and for programs that need no node yet."""

from __future__ import annotations

from skywalker.clients.bus import Bus
from skywalker.clients.threads import ThreadedJunction


class LocalJunction(ThreadedJunction):
    """Behaves as a client of a node that only this object can reach."""

    def __init__(self) -> None:
        super().__init__(Bus())
