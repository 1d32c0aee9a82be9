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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from workers.stats.hands import Hands
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
    Cells,
    Kind,
)

_Memory = TypeVar("_Memory", "memoryview[int]", "array[int]")

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

_LASTING: Final = [
    at for metric in WORKER_METRICS if metric.kind is not Kind.GAUGE for at in range(metric.at, metric.end)
]
"""The cells of a part whose numbers outlive the worker that counted them."""


def _part(cells: _Memory, index: int) -> _Memory:
    """Return the cells of a part: those of the past come first, by slot, then those of the live."""
    at = _NODE_AT + _NODE + index * _PART
    return cells[at : at + _PART]


class SharedCounters:
    """The memory. Made by the supervisor before it forks, which alone gives its parts away and takes them back."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._live = 2 * slots
        self._memory = mmap.mmap(-1, CELL * (_NODE_AT + _NODE + (slots + self._live) * _PART))
        self._cells = memoryview(self._memory).cast("q")
        self.node = self._cells[_NODE_AT : _NODE_AT + _NODE]
        self.hands = Hands(self._live)

    def part(self, number: int) -> memoryview[int]:
        """Return the cells of the live part of that number."""
        assert 0 <= number < self._live
        return _part(self._cells, self._slots + number)

    def take(self, slot: int) -> int:
        """Give a part to a worker that is about to be forked, for its slot; return the part's number."""
        assert 0 <= slot < self._slots
        for number in range(self._live):
            cells = self.part(number)
            if not cells[PID]:
                cells[SLOT], cells[PID] = slot, -1  # until it has one
                self.hands.begin(number)
                return number
        raise AssertionError("a slot has two workers at most")

    def give_back(self, number: int) -> None:
        """Take back the part of a worker that is dead: what it counted belongs to the past of its slot."""
        cells = self.part(number)
        assert cells[PID], "it was given to a worker"
        assert self._cells[0] % 2 == 0, "only the supervisor adds up, one part at a time"
        past = _part(self._cells, cells[SLOT])
        self._cells[0] += 1
        for at in _LASTING:
            past[at] += cells[at]
        cells[:] = memoryview(array("q", bytes(CELL * _PART)))
        self._cells[0] += 1

    def agent_lives(self, now: float) -> None:
        """Write down that the loop of the agent turns, at that time."""
        self.node[AGENT_BEAT] = int(now * 1e6)

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
    cells: Cells

    @classmethod
    def of(cls, cells: Cells) -> Live:
        """Return the worker whose part that is."""
        return cls(cells[SLOT], cells[PID], STATES[cells[STATE]], cells[BEAT] / 1e6, cells)


class Reading:
    """The metrics of a node at one moment."""

    def __init__(self, cells: array[int], slots: int, live: int) -> None:
        self._cells = cells
        self.slots = slots
        parts = (_part(cells, slots + number) for number in range(live))
        self._live = [Live.of(part) for part in parts if part[PID]]
        self.node: Cells = cells[_NODE_AT : _NODE_AT + _NODE]

    def live(self) -> Iterator[Live]:
        """Yield the workers that run: one or two for each slot."""
        yield from self._live

    def slot(self, slot: int) -> Cells:
        """Return the cells of a slot: counters of all workers it ever had, gauges of those that run."""
        assert 0 <= slot < self.slots
        total = _part(self._cells, slot)
        for worker in self.live():
            if worker.slot == slot:
                total = array("q", map(int.__add__, total, worker.cells))
        return total

    def total(self) -> Cells:
        """Return the cells of all slots, added up."""
        parts = [_part(self._cells, slot) for slot in range(self.slots)]
        return array("q", map(sum, zip(*parts, *(worker.cells for worker in self.live()), strict=True)))
