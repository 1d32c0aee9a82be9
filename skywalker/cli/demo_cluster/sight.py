"""The ring as the cluster tells it, for who watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from skywalker.clients.aio.junction import Junction
from skywalker.errors import SkywalkerError
from skywalker.members import Member, Snapshot

PAUSE_S: Final = 0.05
ANSWER_S: Final = 2.0
AGREE_S: Final = 30.0


class SightError(SkywalkerError):
    """The cluster did not become what it should in time; the text says what it is."""


class Sight:
    """The latest ring that was seen. `changed` hears the differences whenever it is another one."""

    def __init__(self, changed: Callable[[list[str]], None]) -> None:
        self.snapshot: Snapshot | None = None
        self._changed = changed
        self._news = asyncio.Condition()

    @property
    def names(self) -> set[str]:
        """The names of the nodes in the ring."""
        return {member.name for member in self.snapshot or ()}

    @property
    def shares(self) -> dict[str, float]:
        """What part of all topics each node owns, by name."""
        if self.snapshot is None:
            return {}
        return {self.snapshot.by_id[id].name: share for id, share in self.snapshot.shares().items()}

    async def watch(self, junction: Junction) -> None:
        """Look over and over, until cancelled."""
        while True:
            try:
                told = await junction.nodes(ANSWER_S)
            except SkywalkerError:
                told = []  # nobody answers just now, and what was seen last stands
            members = [member for member in map(Member.parse, told) if member is not None]
            if members:
                await self._saw(Snapshot(members))
            await asyncio.sleep(PAUSE_S)

    async def until(self, names: Iterable[str]) -> None:
        """Return once the ring is of these nodes, and no others. Raises SightError."""
        wanted = set(names)
        try:
            async with asyncio.timeout(AGREE_S), self._news:
                await self._news.wait_for(lambda: self.names == wanted)
        except TimeoutError:
            raise SightError(
                f"after {AGREE_S:g} s the ring is of {_listed(self.names)}, and should be of {_listed(wanted)}"
            ) from None

    async def _saw(self, newer: Snapshot) -> None:
        older, self.snapshot = self.snapshot, newer
        if older is None or older.version != newer.version:
            self._changed(older.diff(newer) if older is not None else [])
            async with self._news:
                self._news.notify_all()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nobody"
