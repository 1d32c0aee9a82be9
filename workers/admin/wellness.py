"""Whether the node is well, as health.py finds out: one ping at a time, whose answer is for all who ask meanwhile."""

from __future__ import annotations

import asyncio

from skywalker.address import Address
from workers.health import Health


class Wellness:
    """`near` is where the node is pinged."""

    def __init__(self, near: Address) -> None:
        self._health = Health(near, near)
        self._asking: asyncio.Task[bool] | None = None

    async def is_well(self) -> bool:
        """Return whether a worker answers."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self._health.is_well))
        return await asyncio.shield(self._asking)
