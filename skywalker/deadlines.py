"""A queue of what is due at a time: exact to 20 ms, O(1) to add and to discard.

Items lie in buckets of 10 ms, so a call that completes in time, as nearly all do, costs two
dict operations and leaves nothing behind. What becomes of a call that is due, workers/core/calls.c has, and for
clients clients/dialogue.py. Knows no clock: `now` and `at` are seconds on one.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Any, Final

BUCKETS_PER_SECOND: Final = 100

PRECISION_S: Final = 2 / BUCKETS_PER_SECOND
"""Seconds by which something may be late, in a process that has the time."""


class Deadlines:
    """Items of any hashable kind, each with the time at which it is due."""

    __slots__ = ("_buckets", "_times")

    def __init__(self) -> None:
        # A dict has the order in which they came, and takes half the memory of a set.
        self._buckets: dict[int, dict[Hashable, None]] = {}
        self._times: list[int] = []  # a heap that holds every bucket's time, and those of buckets that are gone

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def add(self, item: Hashable, at: float) -> None:
        """Have due() yield `item` once `at` has passed, never before."""
        time = int(at * BUCKETS_PER_SECOND) + 1
        bucket = self._buckets.get(time)
        if bucket is None:
            self._buckets[time] = {item: None}
            heapq.heappush(self._times, time)
        else:
            bucket[item] = None

    def discard(self, item: Hashable, at: float) -> None:
        """Forget `item`, added with this same `at`; nothing happens if it is not there."""
        time = int(at * BUCKETS_PER_SECOND) + 1
        bucket = self._buckets.get(time)
        if bucket is not None:
            bucket.pop(item, None)
            if not bucket:
                del self._buckets[time]
                # Few that are gone may stay: each number lies amid the calls of its time, and keeps their memory.
                if len(self._times) > 2 * len(self._buckets):
                    self._times = sorted(self._buckets)

    def due(self, now: float) -> list[Any]:
        """Remove and return the items whose time has come, in the order of their times, to 10 ms, and as they came."""
        items: list[Any] = []
        times = self._times
        while times and times[0] <= now * BUCKETS_PER_SECOND:
            items += self._buckets.pop(heapq.heappop(times), ())
        return items

    def wait(self, now: float) -> float | None:
        """Return the seconds until something may be due, at least 0; None if nothing ever is."""
        if not self._buckets:
            return None
        # The time of a bucket that is gone at most wakes its owner once for nothing.
        return max(0.0, self._times[0] / BUCKETS_PER_SECOND - now)
