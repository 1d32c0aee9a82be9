"""What a worker did in the last seconds, for whoever asks: how often topics were called; connections it closed."""

from __future__ import annotations

import struct
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from workers.stats.close_reasons import Close

KEPT_CLOSES: Final = 100
"""Connections that were closed last."""

SAMPLES: Final = 500
"""Calls of which the topic is kept, in a second: every one, or about every so-many-th of those that there are."""

WINDOW_S: Final = 5.0
WINDOW_BYTES: Final = 512 * 1024
"""How long they are kept, twice, and how much of them."""

_HEAD: Final = struct.Struct("<IH")
"""For how many calls one stands, and the length of its topic, which follows."""


class Recent:
    """Bounded, and cheap: of what is often it hears but a part. All times are in seconds of any one clock.

    `luck` is random, from 0 to below 1.
    """

    def __init__(self, now: float, luck: Callable[[], float]) -> None:
        self._luck = luck
        self.closed: deque[tuple[float, str, str, str]] = deque(maxlen=KEPT_CLOSES)  # when, peer, reason, text
        # In one piece, since each small object that stays amid those of calls keeps much of their memory.
        self._calls = bytearray()  # of this window
        self._calls_before = bytearray()  # and of the one before
        self._window_at = self._before_at = now  # when they began
        self._every = 1  # calls of which one is kept, on average
        self._samples = 0
        self._since = now  # when that was chosen, and those kept

    def close(self, now: float, peer: str, reason: Close, text: str) -> None:
        """A connection was closed."""
        self.closed.append((now, peer, reason.label, text))

    def call(self, topic: bytes, now: float) -> int:
        """A call was answered. Return how many go by until the next one is to be told here."""
        if len(self._calls) < WINDOW_BYTES:
            self._calls += _HEAD.pack(self._every, len(topic)) + topic
        self._samples += 1
        if self._samples == SAMPLES:
            self._choose(now)
        return self.gap()

    def gap(self) -> int:
        """Return how many calls go by until one is told, at random: who takes turns must not always meet the same."""
        return int(self._luck() * (2 * self._every - 1))

    def _choose(self, now: float) -> None:
        wanted = SAMPLES * max(now - self._since, 0.001)
        self._every = max(1, round(self._every * self._samples / wanted))
        self._samples = 0
        self._since = now

    def look(self, now: float) -> bool:
        """See, every now and then, whether calls have become few. Return whether the gap is to be chosen anew."""
        if now - self._window_at >= WINDOW_S:
            self._calls, self._calls_before = bytearray(), self._calls
            self._window_at, self._before_at = now, self._window_at
        if now - self._since < 1.0:
            return False
        self._choose(now)
        return True

    def rates(self, now: float) -> dict[bytes, float]:
        """Return about how many calls a second each topic has, the busiest first; of two windows at most."""
        calls: Counter[bytes] = Counter()
        for kept in (self._calls_before, self._calls):
            at = 0
            while at < len(kept):
                stands_for, size = _HEAD.unpack_from(kept, at)
                at += _HEAD.size + size
                calls[bytes(kept[at - size : at])] += stands_for
            assert at == len(kept)
        seconds = max(1.0, now - self._before_at)
        return {topic: count / seconds for topic, count in calls.most_common()}
