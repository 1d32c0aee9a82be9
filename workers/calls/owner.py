"""A worker that owns topics, as what is asked of it sees it: there to be asked, or not now.

Calls on the topics of one that is not wait in the core, and go to it once Owner.met() has it led there.
"""

from __future__ import annotations

from typing import Final

from skywalker.members import Place
from workers.calls.inquiries import Carrier, Interest, Question
from workers.core._core import Core

GRACE_S: Final = 0.03
"""Seconds in which the last word on a call comes, from within the node."""

NOWHERE: Final = -1


class Owner:
    """One place on the ring. It may stay while the worker that has it is replaced."""

    __slots__ = ("_core", "_grace_s", "_number", "absent", "carrier", "place")

    def __init__(self, core: Core, place: Place, *, is_here: bool = False, grace_s: float = GRACE_S) -> None:
        """Calls that wait for it have so many seconds for a last word, once their time is over."""
        self._core = core
        self._grace_s = grace_s
        self._number = NOWHERE  # by which the core knows it, while it is on the ring
        self.place = place
        self.absent = Absent(self)
        self.carrier: Carrier | None = None if is_here else self.absent  # None is here

    def wanted(self) -> None:
        """Something waits for it to come back. One that is a sibling is brought by the supervisor."""

    @property
    def is_awaited(self) -> bool:
        """Whether something does."""
        has_calls = self._number != NOWHERE and self._core.is_awaited(self._number)
        return has_calls or self.absent.has_any()

    def found_as(self, number: int) -> None:
        """It is on the ring by that number, or NOWHERE."""
        if self._number != NOWHERE:
            self._core.lead(self._number, 0)
        self._number = number
        if number != NOWHERE:
            self._core.be_patient(number, self._grace_s)
            self._lead()

    def met(self, carrier: Carrier) -> None:
        """It can be asked: what waited goes there, who subscribes first, so that what is published reaches it."""
        assert carrier is not self.absent, "there is somebody to ask"
        self.carrier = carrier
        self.absent.have_interests_lost()
        carrier.settle()
        self._lead()
        self.absent.release(carrier)

    def lost(self, carrier: Carrier | None) -> None:
        """It cannot be asked that way any more; None is here."""
        if self.carrier is carrier:
            self.carrier = self.absent
            self._lead()

    def _lead(self) -> None:
        if self._number != NOWHERE and self.carrier is not None:
            self._core.lead(self._number, self.carrier.handle)


class Absent:
    """Where what is asked waits, besides calls, for an owner that cannot be asked now."""

    __slots__ = ("_censuses", "_interests", "_owner", "handle", "life")

    def __init__(self, owner: Owner) -> None:
        self.handle = self.life = 0
        self._owner: Owner | None = owner
        self._censuses: dict[Question, bytes] = {}  # with their topics
        self._interests: dict[Interest, None] = {}

    def has_any(self) -> bool:
        """Return whether something does."""
        return bool(self._censuses or self._interests)

    def _want(self) -> None:
        if self._owner is not None:
            self._owner.wanted()

    def end(self) -> None:
        """Nobody comes for what waits here."""
        self._owner = None  # the two refer to each other

    @property
    def is_congested(self) -> bool:
        return False

    def settle(self) -> None:
        pass  # it hears nothing

    def ask_census(self, question: Question, topic: bytes) -> None:
        question.carrier = self
        self._censuses[question] = topic
        self._want()

    def forget(self, question: Question) -> None:
        self._censuses.pop(question, None)

    def subscribe(self, interest: Interest) -> None:
        if not interest.audience:
            interest.lost(self)  # nobody wants it any more, and it was never asked for
            return
        self._interests[interest] = None
        self._want()

    def split(self, topic: bytes, life: int, number: int) -> None:
        raise AssertionError("nothing is in effect that is asked for here")

    def unsubscribe(self, interest: Interest) -> None:
        interest.lost(self)  # it was never asked for

    def forget_interest(self, interest: Interest) -> None:
        self._interests.pop(interest, None)

    def have_interests_lost(self) -> None:
        """Have those that wait here be asked for anew, in the order in which they came."""
        for interest in [*self._interests]:
            interest.lost(self)

    def release(self, carrier: Carrier) -> None:
        """Have another carrier take the questions that wait here."""
        censuses, self._censuses = self._censuses, {}
        for census, topic in censuses.items():
            carrier.ask_census(census, topic)
