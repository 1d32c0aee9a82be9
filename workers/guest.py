"""A worker of another node that asks us: its calls wait here, over a link that it made.

As long as its node is on the ring, that it lives is the business of those who make the ring. If it
is not, it may be leaving, or see another ring than we do; or it hangs, or is cut off, and then its
listeners would take values that nobody gets. So it is asked, over the same link, until it does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from skywalker.members import Place
from skywalker.wire.junction import NIL
from workers.alarm import Alarm
from workers.calls import Carrier
from workers.link import Link
from workers.stream import Stream

if TYPE_CHECKING:
    from workers.connection import Connection
    from workers.router import Router

ANSWER_S: Final = 1.0
"""Seconds for an answer, and until the next question."""


class Guest:
    """One of them. `gone` is called once its link has ended."""

    def __init__(self, connection: Connection, place: Place, router: Router, gone: Callable[[Guest], None]) -> None:
        self.place = place
        self._name = connection.peer
        self._router = router
        self._gone = gone
        self._alarm = Alarm(self._look)
        sock, unwritten = connection.detach()
        messages = Stream(sock, router.limits.mesh_bytes, router.turn, unwritten)
        self.link = Link(messages, router, None, self._ended)
        self.link.open()
        self.ring_changed()

    def ring_changed(self) -> None:
        """Have it asked from now on, if its node is not on the ring."""
        if self._alarm.at is None and self._is_stranger():
            self._ask()

    def close(self, reason: str) -> None:
        """End its link."""
        self.link.close(reason)

    def _is_stranger(self) -> bool:
        return self.place.node not in self._router.node.snapshot.by_id

    def _ask(self) -> None:
        self._question = _Question()
        self.link.forwarded.ask_census(self._question, NIL)  # who waits where does not matter
        self._alarm.set(self._router.turn, self._router.turn.now + ANSWER_S)

    def _look(self) -> None:
        if not self._question.answered:
            self.close(f"its node is not on the ring, and does not answer within {ANSWER_S:g} s")
        elif self._is_stranger():
            self._ask()

    def _ended(self, link: Link, reason: str) -> None:
        self._alarm.off(self._router.turn)
        self._router.log.info("guest-left", peer=self._name, reason=reason)
        self._gone(self)


class _Question:
    """What a link needs of a :topic, where nobody waits for the answer but the guest's own clock."""

    def __init__(self) -> None:
        self.answered = False
        self.carrier: Carrier | None = None
        self.number = b""

    def answer(self, info: bytes) -> None:
        """It lives."""
        self.answered = True

    def end(self) -> None:
        """The link has ended."""
