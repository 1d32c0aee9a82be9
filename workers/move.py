"""After the ring has changed: all that waits is looked at once, and what is another worker's now goes there.

That may be much, so it takes several turns, and what is asked by then goes by the new ring already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from workers.alarm import Alarm

if TYPE_CHECKING:
    from workers.connection import Connection
    from workers.feeds import Feed
    from workers.publication import Publication
    from workers.router import Router

CALLS_PER_TURN: Final = 5_000
"""What is looked at in a turn: it takes some milliseconds."""


class Move:
    """Of one worker: what is yet to be looked at."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._feeds: list[Feed] = []
        self._connections: list[Connection] = []
        self._orphans: list[Publication] = []
        self._next = Alarm()
        self._then: list[Callable[[], None]] = []  # who is told once there is nothing more

    def begin(self, then: Callable[[], None] | None = None) -> None:
        """Look at all that waits now, in this turn and the next ones; what was not looked at yet is among it.

        `then` is called once all was.
        """
        if then is not None:
            self._then.append(then)
        self._feeds = self._router.feeds.all()
        self._connections = [*self._router.connections]
        self._orphans = [*reversed(self._router.orphans)]  # from the end on
        self._go_on()

    def _go_on(self) -> None:
        looked_at = 0
        # First, since what is published goes by the new ring already.
        while self._feeds and looked_at < CALLS_PER_TURN:
            self._feeds.pop().ring_changed()
            looked_at += 1
        while self._connections and looked_at < CALLS_PER_TURN:
            for call in self._connections.pop().waiting():
                self._router.reroute(call)
                looked_at += 1
        # Last, so that whoever listens over a connection that is there gets them.
        while self._orphans and looked_at < CALLS_PER_TURN:
            publication = self._orphans.pop()
            if publication in self._router.orphans:
                self._router.reroute(publication)
            looked_at += 1
        if self._feeds or self._connections or self._orphans:
            turn = self._router.turn
            self._next.set(turn, turn.now, self._go_on)
            return
        told, self._then = self._then, []
        for then in told:
            then()
