"""After the ring has changed: all that waits is looked at once, and what is another worker's now goes there.

That may be much, so it takes several turns, and what is asked by then goes by the new ring already:
Core.follow() has router.py look up in that first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from workers.calls.call import Carrier, ClientCall
from workers.calls.interests import Interests, TopicInterest
from workers.calls.orphans import Orphans
from workers.engine.loop import Alarm, Turn

CALLS_PER_TURN: Final = 5_000
"""What is looked at in a turn: it takes some milliseconds."""


class Holder(Protocol):
    """Whose calls wait: a connection."""

    def waiting(self) -> list[ClientCall]:
        """Return them."""


class Publisher(Holder, Protocol):
    """One that may go on to publish."""

    def hold_back(self) -> None:
        """Publish nothing more before all that was is acked: it may go another way, and overtake that."""


class Rebalance:
    """Of one worker: what is yet to be looked at."""

    def __init__(
        self,
        turn: Turn,
        interests: Interests,
        publishers: Iterable[Publisher],
        orphans: Orphans,
        reroute: Callable[[ClientCall], None],
    ) -> None:
        """`publishers` are those of the moment, each time; `reroute` has a call go elsewhere if it should."""
        self._turn = turn
        self._all_interests = interests
        self._publishers = publishers
        self._orphans = orphans
        self._reroute = reroute
        self._interests: list[TopicInterest] = []
        self._holders: list[Holder] = []
        self._next = Alarm()
        self._then: list[Callable[[], None]] = []  # who is told once there is nothing more

    def begin(self, then: Callable[[], None] | None = None) -> None:
        """Look at all that waits now, in this turn and the next ones; what was not looked at yet is among it.

        `then` is called once all was.
        """
        if then is not None:
            self._then.append(then)
        self._interests = self._all_interests.all()
        # From the end on: orphans last, so that whoever listens over a connection that is there gets them.
        self._holders = [self._orphans, *self._publishers]
        self._go_on()

    def succeed(self, predecessor: Carrier) -> None:
        """Ask for the values that came by this carrier anew: another worker has the place of the one behind it."""
        for interest in self._all_interests.all():
            interest.handed_over(predecessor)

    def hold_back(self) -> None:
        """Have nothing more published before all that was is acked."""
        for publisher in self._publishers:
            publisher.hold_back()

    def _go_on(self) -> None:
        looked_at = 0
        # First, since what is published goes by the new ring already.
        while self._interests and looked_at < CALLS_PER_TURN:
            self._interests.pop().ring_changed()
            looked_at += 1
        while self._holders and looked_at < CALLS_PER_TURN:
            for call in self._holders.pop().waiting():
                self._reroute(call)
                looked_at += 1
        if self._interests or self._holders:
            self._next.set(self._turn, self._turn.now, self._go_on)
            return
        told, self._then = self._then, []
        for then in told:
            then()
