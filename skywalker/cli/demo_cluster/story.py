"""What befalls the nodes while lines go through them, and when; and the ring as the cluster tells it then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from skywalker.cli.demo_cluster.fleet import Fleet
from skywalker.cli.demo_cluster.traffic import Traffic
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


FIRST: Final = ("red", "green", "blue")
KILLED, JOINS, DRAINED = "green", "yellow", "red"
NAMES: Final = (*FIRST, JOINS)

KILL_AT, JOIN_AT, DRAIN_AT = 0.25, 0.5, 0.75
"""Parts of the whole time."""

AFTERMATH_S: Final = 0.5
"""Seconds after which the consequences of something are over, from when the ring is what it should be."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """Something that happened to a node, with its consequences; in seconds since the first line left."""

    what: str
    start: float
    end: float


class Story:
    """The chapters so far. `tell` hears what happens."""

    def __init__(self, fleet: Fleet, sight: Sight, traffic: Traffic, tell: Callable[[str], None]) -> None:
        self.chapters: list[Chapter] = []
        self._fleet = fleet
        self._sight = sight
        self._traffic = traffic
        self._tell = tell

    async def run(self, seconds: float) -> None:
        """Let it all happen. Raises SightError if the cluster does not become what it should."""
        await self._sleep_until(KILL_AT * seconds)
        await self._chapter(f"{KILLED} was killed", self._kill, {*FIRST} - {KILLED})
        await self._sleep_until(JOIN_AT * seconds)
        await self._chapter(f"{JOINS} joined", self._join, {*NAMES} - {KILLED})
        await self._sleep_until(DRAIN_AT * seconds)
        await self._chapter(f"{DRAINED} drained", self._drain, {*NAMES} - {KILLED, DRAINED})
        await self._sleep_until(seconds)

    async def _chapter(self, what: str, happens: Callable[[], Awaitable[None]], ring: set[str]) -> None:
        start = self._now()
        await happens()
        await self._sight.until(ring)
        self.chapters.append(Chapter(what, start, self._now() + AFTERMATH_S))

    async def _kill(self) -> None:
        self._tell(f"{KILLED} is killed, all its processes by kill -9")
        await asyncio.to_thread(self._fleet.kill, KILLED)

    async def _join(self) -> None:
        self._tell(f"{JOINS} is started")
        await asyncio.to_thread(self._fleet.start, JOINS)

    async def _drain(self) -> None:
        self._tell(f"{DRAINED} is told to end, and drains")
        await asyncio.to_thread(self._fleet.drain, DRAINED)
        self._tell(f"{DRAINED} has ended")

    async def _sleep_until(self, moment: float) -> None:
        await asyncio.sleep(moment - self._now())

    def _now(self) -> float:
        return self._traffic.progress.now()
