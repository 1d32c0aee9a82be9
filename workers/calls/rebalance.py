"""After the ring has changed: all that waits is looked at once, and what is another worker's now goes there.

That may be much, so it takes several turns, and what is asked by then goes by the new ring already:
Hub.follow() has the core look up in that first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from workers.calls.inquiries import Carrier
from workers.calls.interests import Interests, TopicInterest
from workers.engine.loop import Alarm, Turn

CALLS_PER_TURN: Final = 5_000
"""What is looked at in a turn: it takes some milliseconds."""

WAIT_S: Final = 0.001
"""Seconds until interests are looked at again whose subscriptions are about to move to another worker."""


class Rebalance:
    """Of one worker: what is yet to be looked at."""

    def __init__(self, turn: Turn, interests: Interests, handles: Callable[[], list[int]]) -> None:
        """`handles` returns those of all connections, each time."""
        self._turn = turn
        self._core = turn.core
        self._all_interests = interests
        self._all_handles = handles
        self._interests: list[TopicInterest] = []
        self._handles: list[int] = []
        self._has_published = False  # and that is yet to be looked at
        self._next = Alarm()
        self._then: list[Callable[[], None]] = []  # who is told once there is nothing more

    def begin(self, then: Callable[[], None] | None = None) -> None:
        """Look at all that waits now, in this turn and the next ones; what was not looked at yet is among it.

        `then` is called once all was.
        """
        if then is not None:
            self._then.append(then)
        self._interests = self._all_interests.all()
        self._handles = self._all_handles()
        self._has_published = True
        self._go_on()

    def succeed(self, predecessor: Carrier) -> None:
        """Ask for the values that came by this carrier anew: another worker has the place of the one behind it."""
        for interest in self._all_interests.all():
            interest.handed_over(predecessor)

    def hold_back(self) -> None:
        """Have nothing more published before all that was is acked."""
        self._core.hold_back()

    def _go_on(self) -> None:
        looked_at = 0
        waiting: list[TopicInterest] = []
        # First, since what is published goes by the new ring already.
        while self._interests and looked_at < CALLS_PER_TURN:
            interest = self._interests.pop()
            if not interest.ring_changed():
                waiting.append(interest)
            looked_at += 1
        while self._handles and looked_at < CALLS_PER_TURN:
            handle = self._handles.pop()
            self._core.reroute(handle)
            looked_at += self._core.counts(handle)[0]
        if self._interests or self._handles or waiting:
            wait_s = 0.0 if self._interests or self._handles else WAIT_S
            self._interests += waiting
            self._next.set(self._turn, self._turn.now + wait_s, self._go_on)
            return
        # Last, so that whoever listens over a connection that is there gets what was published.
        if self._has_published:
            self._has_published = False
            self._core.reroute_publications()
        told, self._then = self._then, []
        for then in told:
            then()
