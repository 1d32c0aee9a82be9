"""What a worker counts of itself: it adds to cells of memory that its node may share. See metrics.py and shared.py."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Final

from skywalker.errors import Busy, RequestError
from skywalker.journal import record
from skywalker.journal.record import MET, PROMPT, PUBLISH
from workers.stats import _cells, metrics
from workers.stats.close_reasons import Close
from workers.stats.recent import Recent

CALLS: Final = metrics.CALLS.at
ROUTED: Final = metrics.ROUTED.at
WAIT: Final = metrics.WAIT.at
HAND_OFF: Final = metrics.HAND_OFF.at
OUTCOMES: Final = len(record.OUTCOMES)
LAST_BUCKET: Final = metrics.BUCKETS - 1
WIDTH: Final = metrics.HISTOGRAM_CELLS

BITS: Final = bytes(byte.bit_length() for byte in range(256))
"""Of every byte, how many it has without those in front that are 0."""

_CODES: Final[Mapping[str, int]] = {code: at for at, code in enumerate(metrics.CODES, metrics.REFUSED.at)}
_LIMITS: Final[Mapping[object, int]] = {limit: at for at, limit in enumerate(metrics.LIMITS, metrics.LIMITED.at)}


class Counters:
    """Numbers are added where they stand, so that they outlive the worker; nobody else writes there.

    Whoever counts adds to `cells`: compiled, that is a C pointer, which only compiled modules can use. To all others
    the same cells are `memory`.
    """

    __slots__ = ("_clock", "_gap", "cells", "memory", "recent")

    def __init__(
        self,
        memory: memoryview[int] | None,
        clock: Callable[[], float],
        luck: Callable[[], float],
    ) -> None:
        """Count in these WORKER_CELLS of metrics.py, or more; without any, in some of its own.

        `luck` is random, from 0 to below 1.
        """
        self.memory = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS))) if memory is None else memory
        self.cells = _cells.cells_in(self.memory)
        self._clock = clock
        self.recent = Recent(clock(), luck)
        self._gap = 0  # calls of which it is not told

    def took(self, at: int, seconds: float) -> None:
        """Add a time to the histogram whose first cell that is."""
        us = rest = int(seconds * 1e6) if seconds > 0.0 else 0
        bucket = 0
        while rest > 255:
            rest >>= 8
            bucket += 8
        bucket += BITS[rest]
        self.cells[at + (bucket if bucket < LAST_BUCKET else LAST_BUCKET)] += 1
        self.cells[at + LAST_BUCKET + 1] += us

    def answered(self, topic: bytes, method: int, outcome: int, route: int, seconds: float) -> None:
        """A call was answered after so long: a method, an outcome and a route of record.py."""
        # Compiled, nothing else keeps this to cells of its own: see the order in metrics.py.
        assert outcome < OUTCOMES
        assert CALLS + method * OUTCOMES + outcome < ROUTED
        assert ROUTED + route < WAIT
        self.cells[CALLS + method * OUTCOMES + outcome] += 1
        self.cells[ROUTED + route] += 1
        if outcome == MET:
            self.took(WAIT + method * WIDTH, seconds)
        elif outcome == PROMPT and method != PUBLISH:
            # What is published waits for nobody to take it.
            self.took(HAND_OFF, seconds)
        if self._gap:
            self._gap -= 1
        else:
            self._gap = self.recent.call(topic, self._clock())

    def refused(self, error: RequestError) -> None:
        """A call, or a frame that is none, was answered with an error."""
        self.memory[_CODES[error.code]] += 1
        self.limited(error)

    def limited(self, by: RequestError | str) -> None:
        """A limit, or the one that an error names if it is Busy, has refused or ended something."""
        limit = by.details.get("limit") if isinstance(by, Busy) else by
        if limit in _LIMITS:
            self.memory[_LIMITS[limit]] += 1

    def handshake_failed(self) -> None:
        """A connection that was to speak TLS has ended before it did."""
        self.memory[metrics.HANDSHAKES.at] += 1

    def closed(self, peer: str, reason: Close, text: str) -> None:
        """A connection was closed, and why."""
        self.memory[metrics.CLOSED.at + reason] += 1
        self.recent.close(self._clock(), peer, reason, text)

    def look(self) -> None:
        """See, about once a second, how many of the calls `recent` should be told of."""
        if self.recent.look(self._clock()):
            self._gap = self.recent.gap()
