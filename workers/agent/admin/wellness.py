"""Whether the node is well: one ping at a time, whose answer is for all who ask meanwhile."""

from __future__ import annotations

import asyncio

from workers.agent.ping import Ping


class Wellness:
    """`ping` is how that is found out."""

    def __init__(self, ping: Ping) -> None:
        self._ping = ping
        self._asking: asyncio.Task[bool] | None = None

    async def is_well(self) -> bool:
        """Return whether a worker answers."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self._ping.is_answered))
        return await asyncio.shield(self._asking)
