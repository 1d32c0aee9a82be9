"""The demo's counts, taken from their topic."""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Final, Self

import skywalker
from skywalker.errors import Closed

COUNTS: Final = "demo/counts"
"""The topic."""

TAKES: Final = 64
TAKE_S: Final = 3600.0
"""Of calls at a time, each: longer than the demo, since a count that comes just when its call ends would be lost."""


class Tally:
    """Takes counts from a topic. A word's count only grows, so the highest is right, in whatever order they come."""

    def __init__(self, junction: skywalker.Client) -> None:
        self._counts: dict[str, int] = {}
        self._junction = junction
        self._thread = threading.Thread(target=self._take, daemon=True)

    @classmethod
    @contextlib.contextmanager
    def started(cls, address: str) -> Iterator[Self]:
        """Have one that takes. Raises Unreachable if there is no node."""
        tally = cls(skywalker.connect(address))
        tally._thread.start()
        try:
            yield tally
        finally:
            tally._junction.close()
            tally._thread.join()

    def now(self) -> dict[str, int]:
        """Return the counts so far."""
        return self._counts.copy()

    def _take(self) -> None:
        with contextlib.suppress(Closed):
            calls = collections.deque(self._begin() for _ in range(TAKES))
            while True:
                self._add(calls.popleft().result())
                calls.append(self._begin())

    def _begin(self) -> skywalker.Pending:
        return self._junction.begin("take", COUNTS, timeout=TAKE_S)

    def _add(self, message: Mapping[str, int]) -> None:
        word, count = str(message["word"]), message["count"]
        self._counts[word] = max(count, self._counts.get(word, 0))
