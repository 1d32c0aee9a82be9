"""What a worker counts of itself: it adds to cells of memory that its node may share. See metrics.py and shared.py."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Final

from skywalker.errors import Busy, RequestError
from workers.stats import metrics
from workers.stats.close_reasons import Close
from workers.stats.recent import Recent

_CODES: Final[Mapping[str, int]] = {code: at for at, code in enumerate(metrics.CODES, metrics.REFUSED.at)}
_LIMITS: Final[Mapping[object, int]] = {limit: at for at, limit in enumerate(metrics.LIMITS, metrics.LIMITED.at)}


class Counters:
    """Numbers are added where they stand, so that they outlive the worker; nobody else writes there.

    Calls, bytes and turns are counted by the core, in the same `memory`.
    """

    __slots__ = ("_clock", "memory", "recent")

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
        self._clock = clock
        self.recent = Recent(clock(), luck)

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

    def moved(self, way: str) -> None:
        """A connection went to another worker, or came from one, or was not taken: one of what MOVED counts."""
        self.memory[metrics.MOVED.cell(way)] += 1

    def closed(self, peer: str, reason: Close, text: str) -> None:
        """A connection was closed, and why."""
        self.memory[metrics.CLOSED.at + reason] += 1
        self.recent.close(self._clock(), peer, reason, text)
