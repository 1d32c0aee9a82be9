"""A worker that owns topics, as the calls on their way to it see it: there to be asked, or not now."""

from __future__ import annotations

from typing import Final

from skywalker.members import Place
from workers.calls.call import GRACE_S, Carrier, ClientCall
from workers.calls.inquiries import Interest, Question
from workers.calls.states import ENDING

NEVER_SENT: Final = b"\xff"
"""In place of a number: behind all there are."""


class Owner:
    """One place on the ring. It may stay while the worker that has it is replaced."""

    __slots__ = ("absent", "carrier", "place")

    def __init__(self, place: Place, is_here: bool = False) -> None:
        self.place = place
        self.absent = Absent(self)
        self.carrier: Carrier | None = None if is_here else self.absent  # None is here, where calls need no carrying

    def wanted(self) -> None:
        """A call waits for it to come back. One of a sibling's is brought by the supervisor."""

    def met(self, carrier: Carrier) -> None:
        """It can be asked: what waited for it goes there."""
        assert carrier is not self.absent, "there is somebody to ask"
        self.carrier = carrier
        self.absent.release(carrier)

    def lost(self, carrier: Carrier) -> None:
        """It cannot be asked that way any more."""
        if self.carrier is carrier:
            self.carrier = self.absent

    def end(self) -> None:
        """It will not come back, and what still waits for it is to go elsewhere."""
        self.absent.end()


class Absent(Carrier):
    """Where calls wait for an owner that cannot be asked now."""

    __slots__ = ("_calls", "_censuses", "_interests", "_owner")

    def __init__(self, owner: Owner) -> None:
        Carrier.__init__(self, owner.place, GRACE_S)
        self._owner: Owner | None = owner
        self._calls: dict[ClientCall, None] = {}
        self._censuses: dict[Question, bytes] = {}  # with their topics
        self._interests: dict[Interest, None] = {}

    def __len__(self) -> int:
        return len(self._calls) + len(self._censuses) + len(self._interests)

    def _want(self) -> None:
        if self._owner is not None:
            self._owner.wanted()

    def end(self) -> None:
        """Nobody comes for what waits here."""
        self._owner = None  # the two refer to each other

    def congested(self) -> bool:
        return False

    def forward(self, call: ClientCall) -> None:
        call.sent_on(self, call.number)
        self._calls[call] = None
        self._want()

    def ask_back(self, call: ClientCall) -> None:
        # "Is anyone there?" is asked of one that is about to be: so it gets the time that a last word has.
        if not call.cancelled_by and call.since == call.deadline:
            return
        self.withdraw(call)
        call.returned()

    def withdraw(self, call: ClientCall) -> bool:
        assert call.carrier is self, "it waits here"
        del self._calls[call]
        call.carrier = None
        return True

    def catch_up(self) -> None:
        pass  # it has said nothing

    def ask_census(self, call: Question, topic: bytes) -> None:
        call.carrier = self
        self._censuses[call] = topic
        self._want()

    def forget_census(self, call: Question) -> None:
        self._censuses.pop(call, None)

    def subscribe(self, interest: Interest) -> None:
        if not interest.audience:
            interest.lost(self)  # nobody wants it any more, and it was never asked for
            return
        self._interests[interest] = None
        self._want()

    def unsubscribe(self, interest: Interest) -> None:
        interest.lost(self)  # it was never asked for

    def forget_interest(self, interest: Interest) -> None:
        self._interests.pop(interest, None)

    def release(self, carrier: Carrier) -> None:
        """Have another carrier take all that waits here, in the order in which it came to this worker.

        Who subscribes first, so that what is published reaches it.
        """
        for interest in [*self._interests]:
            interest.lost(self)
        carrier.settle()
        calls, self._calls = self._calls, {}
        for call in sorted(calls, key=_place) if len(calls) > 1 else calls:
            carrier.forward(call)
            if call.state == ENDING:
                carrier.ask_back(call)
                call.caller.postpone(call, carrier.grace_s)
        censuses, self._censuses = self._censuses, {}
        for census, topic in censuses.items():
            carrier.ask_census(census, topic)


def _place(call: ClientCall) -> tuple[float, bytes]:
    """Return what orders calls: of those read at once, the numbers by which they were sent on before, if they were."""
    return call.since, call.number or NEVER_SENT
