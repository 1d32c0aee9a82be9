"""The cells of a worker, in memory that its node shares: see board.py."""

from __future__ import annotations

from array import array
from typing import Final

from skywalker.journal import record
from skywalker.journal.record import MET, PROMPT, PUBLISH
from workers import figures
from workers.tally import Tally

CALLS: Final = figures.CALLS.at
ROUTED: Final = figures.ROUTED.at
WAIT: Final = figures.WAIT.at
HAND_OFF: Final = figures.HAND_OFF.at
OUTCOMES: Final = len(record.OUTCOMES)
LAST_BUCKET: Final = figures.BUCKETS - 1
WIDTH: Final = figures.HISTOGRAM_CELLS

BITS: Final = bytes(byte.bit_length() for byte in range(256))


class Cells(Tally):
    """Numbers are added where they stand, so that they outlive the worker; nobody else writes there."""

    __slots__ = ("_cells",)

    def __init__(self, cells: memoryview[int] | None = None) -> None:
        """Without cells of a board, it has some of its own."""
        self._cells = memoryview(array("q", bytes(8 * figures.WORKER_CELLS))) if cells is None else cells

    def add(self, at: int, by: int) -> None:
        self._cells[at] += by

    def set(self, at: int, value: int) -> None:
        self._cells[at] = value

    def took(self, at: int, seconds: float) -> None:
        us = rest = int(seconds * 1e6) if seconds > 0.0 else 0
        bucket = 0
        while rest > 255:
            rest >>= 8
            bucket += 8
        bucket += BITS[rest]
        self._cells[at + (bucket if bucket < LAST_BUCKET else LAST_BUCKET)] += 1
        self._cells[at + LAST_BUCKET + 1] += us

    def answered(self, topic: bytes, method: int, outcome: int, route: int, seconds: float) -> None:
        self._cells[CALLS + method * OUTCOMES + outcome] += 1
        self._cells[ROUTED + route] += 1
        if outcome == MET:
            self.took(WAIT + method * WIDTH, seconds)
        elif outcome == PROMPT and method != PUBLISH:
            # What is published waits for nobody to take it.
            self.took(HAND_OFF, seconds)
