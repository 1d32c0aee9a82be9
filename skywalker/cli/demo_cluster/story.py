"""What befalls the nodes while lines go through them, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from skywalker.cli.demo_cluster.fleet import Fleet
from skywalker.cli.demo_cluster.sight import Sight
from skywalker.cli.demo_cluster.traffic import Traffic

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
