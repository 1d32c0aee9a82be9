"""What one principal does at this worker: what it may, and how much of it there is now."""

from __future__ import annotations

from typing import Final

from skywalker.access.principal import ACTIONS, Principal
from skywalker.errors import Busy, Forbidden
from skywalker.limits import MIB

MAX_KNOWN: Final = MIB
"""Bytes of topics known to be allowed: to look through patterns for each call takes longer than all else it takes."""

OVERHEAD: Final = 100
"""Bytes that a topic takes besides its own, about."""


class Bucket:
    """Lets `rate` through a second, over any while: it is full at first, and never holds more than a second's worth."""

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

    @property
    def left(self) -> float:
        """How many it would let through at once, when it was last asked."""
        return self._left

    def resume(self, left: float) -> None:
        """Go on from where another has left off."""
        self._left = min(self._left, left)


class Account:
    """Shared by all its connections here."""

    __slots__ = ("_allowed", "_known", "_most", "bucket", "connections", "in_flight", "principal")

    def __init__(self, principal: Principal, now: float) -> None:
        self.principal = principal
        self.connections = 0
        self.in_flight = 0  # its calls that wait, and its subscriptions
        self.bucket = Bucket(principal.rate, now) if principal.rate else None
        self._most = principal.in_flight
        self._allowed: dict[str, set[bytes]] = {action: set() for action in ACTIONS}  # by action, topics seen to be so
        self._known = 0  # bytes of those

    def open(self, in_flight: int) -> None:
        """Count one more connection, with so many calls in flight. Raises Busy as check_room() does."""
        self.check_room(in_flight)
        self.connections += 1
        self.in_flight += in_flight

    def check_room(self, in_flight: int) -> None:
        """Raise Busy if there are as many connections as there may be, or no room for so many more calls in flight."""
        limit = self.principal.connections
        if limit and self.connections >= limit:
            raise Busy(
                f"{self.principal.name} has {limit} connections at this worker",
                {"limit": "access.connections", "value": limit},
            )
        if in_flight and self._most and self.in_flight + in_flight > self._most:
            raise self.too_many()

    def too_many(self) -> Busy:
        """Return the error for one more of its calls than may wait."""
        return Busy(
            f"{self._most} calls of {self.principal.name} wait at this worker",
            {"limit": "access.in_flight", "value": self._most},
        )

    def check(self, action: str, topic: bytes) -> None:
        """Raise Forbidden unless the principal may do one of ACTIONS to a topic, as canonical MessagePack."""
        allowed = self._allowed[action]
        if topic in allowed:
            return
        if not self.principal.may(action, topic):
            raise self.forbidden(action, f"may not {action} on this topic")
        self._known += OVERHEAD + len(topic)
        if self._known > MAX_KNOWN:
            for each in self._allowed.values():
                each.clear()
            self._known = OVERHEAD + len(topic)
        allowed.add(topic)

    def forbidden(self, missing: str, text: str) -> Forbidden:
        """Return how it is told that it lacks a right."""
        return Forbidden(f"{self.principal.name} {text}", {"missing": missing})


def let_through(own: Bucket | None, account: Account | None, now: float) -> tuple[float, str]:
    """Count one more thing that is asked on a connection with that bucket, for that account.

    Returns 0, or the seconds until there may be more, and by what limit.
    """
    seconds = 0.0 if own is None else own.delay(now)
    if seconds:
        return seconds, "max_rate"
    if account is not None and account.bucket is not None:
        seconds = account.bucket.delay(now)
        if seconds and own is not None:
            own.put_back()
    return seconds, "access.rate"
