"""A junction within one process, for asyncio: for tests, and for programs that need no node yet."""

from __future__ import annotations

from skywalker.clients.bus import Bus
from skywalker.clients.tasks import TaskJunction


class LocalJunction(TaskJunction):
    """Behaves as a client of a node that only this object can reach. Make it while its event loop runs."""

    def __init__(self) -> None:
        super().__init__(Bus())
