"""How many may come in a second: a bucket that is full at first, and never holds more than a second's worth."""

from __future__ import annotations


class Bucket:
    """Lets `rate` through a second, over any while; all of a second's may come at once."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate)
        self._at = now

    def delay(self, now: float) -> float:
        """Let one through and return 0, or return the seconds until one may come."""
        self._left = min(float(self._rate), self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return (1.0 - self._left) / self._rate
        self._left -= 1.0
        return 0.0

    def put_back(self) -> None:
        """The one that was let through last did not come: there may be another."""
        self._left += 1.0
