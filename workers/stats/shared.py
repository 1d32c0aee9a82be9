"""The metrics of a node in memory that its processes share: workers add, and whoever wants to know reads.

    one cell      version: odd while metrics are on their way from one part to another
    node          what the supervisor counts
    past          for each slot, the counters of its workers that are dead
    live          for each worker that runs, its own metrics; more than there are slots, since a worker that is being
                  replaced goes on for a while beside its successor

Nobody is locked out: a worker adds to cells that nobody else writes, with plain adds, and a
reader that meets an odd version, or another one afterwards, reads again.
"""

from __future__ import annotations

import mmap
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from workers.stats.metrics import (
    AGENT_BEAT,
    BEAT,
    NODE_CELLS,
    PID,
    SLOT,
    STATE,
    STATES,
    WORKER_CELLS,
    WORKER_METRICS,
    Kind,
)

CELL: Final = 8
"""Bytes of a cell."""

TRIES: Final = 100
RETRY_S: Final = 0.001


def _page(cells: int) -> int:
    """Return so many cells, rounded up so that no two processes write to one cache line."""
    return -(-cells // 64) * 64


_NODE_AT: Final = 64
_NODE: Final = _page(NODE_CELLS)
_PART: Final = _page(WORKER_CELLS)

_COUNTERS: Final = [
    at for metric in WORKER_METRICS if metric.kind is not Kind.GAUGE for at in range(metric.at, metric.end)
]


class SharedCounters:
    """The memory. Made by the supervisor before it forks, which alone gives its parts away and takes them back."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._live = 2 * slots
        self._memory = mmap.mmap(-1, CELL * (_NODE_AT + _NODE + (slots + self._live) * _PART))
        self._cells = memoryview(self._memory).cast("q")
        self.node = self._cells[_NODE_AT : _NODE_AT + _NODE]

    def part(self, number: int) -> memoryview[int]:
        """Return the cells of the live part of that number."""
        return self._part(self._slots + number)

    def _part(self, index: int) -> memoryview[int]:
        at = _NODE_AT + _NODE + index * _PART
        return self._cells[at : at + _PART]

    def take(self, slot: int) -> int:
        """Give a part to a worker that is about to be forked, for its slot; return the part's number."""
        for number in range(self._live):
            cells = self.part(number)
            if not cells[PID]:
                cells[SLOT], cells[PID] = slot, -1  # until it has one
                return number
        raise AssertionError("a slot has two workers at most")

    def give_back(self, number: int) -> None:
        """Take back the part of a worker that is dead: what it counted belongs to the past of its slot."""
        cells = self.part(number)
        past = self._part(cells[SLOT])
        self._cells[0] += 1
        for at in _COUNTERS:
            past[at] += cells[at]
        cells[:] = memoryview(array("q", bytes(CELL * _PART)))
        self._cells[0] += 1

    def agent_lives(self) -> None:
        """Write down that the loop of the agent turns."""
        self.node[AGENT_BEAT] = int(time.monotonic() * 1e6)

    def read(self) -> Reading:
        """Return what all metrics are now, each as it was at some moment of this call."""
        for _ in range(TRIES):
            version = self._cells[0]
            if version % 2 == 0:
                cells = array("q", bytes(self._memory))
                if cells[0] == self._cells[0] == version:
                    return Reading(cells, self._slots, self._live)
            time.sleep(RETRY_S)
        raise RuntimeError("the supervisor died while it was adding up metrics")


@dataclass(frozen=True, slots=True)
class Live:
    """A worker that runs, or is about to."""

    slot: int
    pid: int  # -1 until it is known
    state: str  # of metrics.STATES
    beat: float  # when its loop turned last, in s of the monotonic clock; 0 until it does
    cells: Sequence[int]


def _live(cells: array[int]) -> Live:
    return Live(cells[SLOT], cells[PID], STATES[cells[STATE]], cells[BEAT] / 1e6, cells)


class Reading:
    """The metrics of a node at one moment."""

    def __init__(self, cells: array[int], slots: int, live: int) -> None:
        self._cells = cells
        self.slots = slots
        parts = (self._part(slots + number) for number in range(live))
        self._live = [_live(part) for part in parts if part[PID]]
        self.node: Sequence[int] = cells[_NODE_AT : _NODE_AT + _NODE]

    def _part(self, index: int) -> array[int]:
        at = _NODE_AT + _NODE + index * _PART
        return self._cells[at : at + _PART]

    def live(self) -> Iterator[Live]:
        """Yield the workers that run: one or two for each slot."""
        yield from self._live

    def slot(self, slot: int) -> Sequence[int]:
        """Return the cells of a slot: counters of all workers it ever had, gauges of those that run."""
        total = self._part(slot)
        for worker in self.live():
            if worker.slot == slot:
                total = array("q", map(int.__add__, total, worker.cells))
        return total

    def total(self) -> Sequence[int]:
        """Return the cells of all slots, added up."""
        parts = [self._part(slot) for slot in range(self.slots)]
        return array("q", map(sum, zip(*parts, *(worker.cells for worker in self.live()), strict=True)))
