"""What the agent knows of its node, for all that the admin server shows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import skywalker
from skywalker.members import Member, Snapshot
from workers.agent.ping import Ping
from workers.stats.shared import Live

SERVING: Final = "serving"
"""Which of metrics.STATES a worker is in that clients may come to."""


@dataclass(slots=True)
class View:
    """Written by the agent's thread, one field at a time, and read by the admin server's."""

    me: Member
    doors: Mapping[str, str]  # where the node listens, by door
    snapshot: Snapshot
    ping: Ping  # how is found out whether a worker answers
    draining: bool = False
    pid: int = field(default_factory=os.getppid)  # of the supervisor
    version: str = skywalker.__version__
    _asking: asyncio.Task[bool] | None = None

    @property
    def share(self) -> float:
        """The part of the ring that is this node's; 0 once it has left."""
        return self.snapshot.shares().get(self.me.id, 0.0)

    def is_ready(self, workers: Iterable[Live]) -> bool:
        """Whether clients are welcome: the node does not drain, and some worker serves."""
        return not self.draining and any(worker.state == SERVING for worker in workers)

    async def is_well(self) -> bool:
        """Return whether a worker answers: one ping at a time, whose answer is for all who ask meanwhile."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self.ping.is_answered))
        return await asyncio.shield(self._asking)
