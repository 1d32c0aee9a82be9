"""What we ask of one other worker: calls of our clients wait there, and get values, since it owns their topics."""

from __future__ import annotations

from typing import Final

from skywalker.errors import Busy
from skywalker.journal.record import NODE, SIBLING
from skywalker.junction import Junction
from skywalker.members import Place
from skywalker.wire import frames, values
from skywalker.wire.junction import FALSE, NIL, TRUE
from workers.calls.call import GRACE_S, Carrier, ClientCall, NodeCall
from workers.calls.inquiries import Interest, Question
from workers.calls.publication import Publication
from workers.engine.loop import Turn
from workers.engine.points import reached
from workers.mesh.messages import (
    ALSO,
    BUSY,
    CENSUS,
    COUNTED,
    GIVE,
    LAGGED,
    LISTEN,
    LONG,
    LOST,
    MET,
    OFFER,
    PARTING,
    PUBLISH,
    RECALL,
    REFUSED,
    RETIRED,
    SEND,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
    TOOK,
    VISIT,
    WITHDRAW,
    WITHDRAWN,
    Messages,
    limit_of,
    unwrapped,
    wrapped,
)
from workers.mesh.readiness import Pausable

NONE: Final = values.pack(0)

OURS: Final = b"\xcf"
"""What our numbers begin with; those that the owner gives begin otherwise."""

_BYTES: Final = [bytes((low,)) for low in range(256)]


class Offer(NodeCall):
    """A value that the owner of its topic offers to a listening client of ours."""

    __slots__ = ("number", "outbound")

    def begin_for(self, outbound: Outbound, number: bytes) -> None:
        """Set up what a call has besides begin()."""
        self.outbound = outbound
        self.number = number

    def met(self) -> None:
        self.became(TOOK)

    def missed(self) -> None:
        self.answered = True
        if self.too_long:
            self.outbound.refused(self.number, self.too_long)
        else:
            self.became(LOST)

    def became(self, outcome: int) -> None:
        """Tell the owner the outcome: TOOK or LOST."""
        self.outbound.decided(self.number, outcome)


class Passing(Offer):
    """A value that the owner of its topic offers to all who subscribe here, and through here."""

    __slots__ = ("publication",)

    def begin_as(self, publication: Publication | None) -> None:
        """Set up what it has besides begin() and begin_for(): whose `publication` it is, if one of ours."""
        self.publication = publication

    def place_for(self, caller: object) -> int:
        return 0 if self.publication is None else self.publication.place_for(caller)

    def given_here(self, listener: NodeCall) -> None:
        self.remember(listener)

    def became(self, outcome: int) -> None:
        self.outbound.passed(self.number, outcome)


class Outbound(Carrier):
    """The calls of our clients that wait at one other worker, and the values that it offers to them."""

    __slots__ = (
        "_calls",
        "_censuses",
        "_heir",
        "_interests",
        "_is_retired",
        "_junction",
        "_messages",
        "_next",
        "_number_head",
        "_passing",
        "_since",
        "_since_bytes",
        "_turn",
        "_value",
        "parts",
    )  # fmt: skip

    def __init__(self, messages: Messages, turn: Turn, junction: Junction, place: Place | None) -> None:
        """`place` is that of an owner; without one, the other end only asks us."""
        Carrier.__init__(self, place, GRACE_S)
        self.parts = False  # the other end has said that it goes, as is planned
        self.route = NODE if messages.abroad else SIBLING
        self._messages = messages
        self._turn = turn
        self._junction = junction
        # By our number, those that wait, and listeners that were given a value which has no outcome yet.
        self._calls: dict[bytes, ClientCall] = {}
        self._censuses: dict[bytes, Question] = {}
        self._interests: dict[bytes, Interest] = {}  # by topic
        self._passing: dict[bytes, Passing] = {}  # by the owner's number
        self._is_retired = False  # the owner hands out nothing more
        self._heir: Pausable | None = None  # to its successor, which is not heard before that
        self._value = b""  # what was given last
        self._next = 0
        self._number_head = b""
        self._since_bytes = b""  # calls that were read at once have one time, which is encoded once
        self._since = 0.0

    # What our clients ask.

    def congested(self) -> bool:
        return self._messages.congested()

    def is_idle(self) -> bool:
        """Return whether nothing waits there, and every value that was given is decided."""
        return not (self._calls or self._interests or self._passing)

    def forward(self, call: ClientCall) -> None:
        since = call.since
        if self._messages.abroad:
            since -= self._turn.now
        if since != self._since or not self._since_bytes:
            self._since, self._since_bytes = since, values.pack(since)
        number = self._number()
        assert number not in self._calls, "each call has a number of its own"
        call.sent_on(self, number)
        call.route = self.route
        self._calls[number] = call
        if isinstance(call, Publication):
            assert call.value is not None, "it has one to publish"
            value, form = call.value, NIL
            if call.form:
                value, form = wrapped(value, call.form)
            self._messages.tell(PUBLISH, number, call.topic, value, form)
        elif call.value is None:
            group = NIL if call.group is None else call.group
            self._messages.tell(LISTEN, number, self._since_bytes, call.topic, group)
        else:
            self._messages.tell(SEND, number, self._since_bytes, call.topic, call.value)

    def _number(self) -> bytes:
        """Return a number that no other call on this link has or will have, encoded."""
        low = self._next & 0xFF
        if not low:
            self._number_head = OURS + (self._next >> 8).to_bytes(7, "big")
        self._next += 1
        return self._number_head + _BYTES[low]

    def ask_back(self, call: ClientCall) -> None:
        self._messages.tell(WITHDRAW, call.number, FALSE)

    def withdraw(self, call: ClientCall) -> bool:
        assert call.carrier is self, "it waits there"
        del self._calls[call.number]
        call.carrier = None
        self._messages.tell(WITHDRAW, call.number, TRUE)
        return call.value is None  # a value on its way to a listener goes to somebody else

    def catch_up(self) -> None:
        self._messages.catch_up()

    def ask_census(self, call: Question, topic: bytes) -> None:
        self._ask(CENSUS, call, topic)

    def have_visit(self, question: Question, whom: bytes) -> None:
        """Have the other end, which is being replaced, go to a new worker of another node, and answer once it has."""
        self._ask(VISIT, question, whom)

    def _ask(self, kind: int, question: Question, about: bytes) -> None:
        question.carrier = self
        question.number = self._number()
        self._censuses[question.number] = question
        self._messages.tell(kind, question.number, about)

    def forget_census(self, call: Question) -> None:
        self._censuses.pop(call.number, None)

    def subscribe(self, interest: Interest) -> None:
        self._interests[interest.topic] = interest
        self._messages.tell(SUBSCRIBE, interest.topic, values.pack(interest.audience))

    def settle(self) -> None:
        self._messages.tell(SETTLED, NIL)

    def unsubscribe(self, interest: Interest) -> None:
        self._messages.tell(SUBSCRIBE, interest.topic, NONE)

    def forget_interest(self, interest: Interest) -> None:
        if self._interests.get(interest.topic) is interest:
            del self._interests[interest.topic]

    def decided(self, number: bytes, outcome: int) -> None:
        """Say what became of a value that came for one of our clients: TOOK or LOST."""
        self._calls.pop(number, None)  # the owner may have died meanwhile
        self._messages.tell(outcome, number)

    def refused(self, number: bytes, limit: int) -> None:
        """Say that a value is too long for one of our clients, which takes so many bytes."""
        self._calls.pop(number, None)
        self._messages.tell(LONG, number, values.pack(limit))

    # What the other says.

    def hear(self, kind: int, message: list[bytes]) -> None:
        """Deal with a message to the worker of the caller."""
        if kind == GIVE:
            self._value = message[2]
            self._give(message[1])
        elif kind == MET:
            call = self._no_longer_waiting(message[1], True)
            if call is not None:
                call.answered = True
                call.met()
        elif kind == ALSO:
            self._give(message[1])
        elif kind == WITHDRAWN:
            call = self._no_longer_waiting(message[1], False)
            if call is not None:
                call.returned()
        elif kind == BUSY:
            call = self._no_longer_waiting(message[1], False)
            if call is not None:
                call.fail(Busy("no room for more calls at the worker that owns the topic", {"limit": "waiting_bytes"}))
        elif kind == REFUSED:
            call = self._no_longer_waiting(message[1], False)
            if call is not None:
                if call.value is None:
                    raise ValueError("that a listener's value is too long")
                call.refuse(limit_of(message[2]))
        elif kind == COUNTED:
            info = values.unpack(message[2])
            census = self._censuses.pop(message[1], None)
            if census is not None and isinstance(info, bytes) and frames.is_value(info):
                census.answer(info)
            elif census is not None:
                census.end()  # a client could not read it
        elif kind == OFFER:
            self._pass_on(message[1], message[2], message[3], message[4])
        elif kind == SUBSCRIBED:
            interest = self._interests.get(message[1])
            if interest is not None:
                interest.answered(self)
        elif kind == LAGGED:
            interest = self._interests.get(message[1])
            if interest is not None:
                interest.cut_off()
        elif kind == RECALL:
            self._recall(message[1])
        elif kind == PARTING:
            self.parts = True
        elif kind == RETIRED:
            self.retired()

    def _no_longer_waiting(self, number: bytes, is_met: bool) -> ClientCall | None:
        """Return a call of which there is a last word; None if it is none that this word can be about."""
        call = self._calls.get(number)
        if call is None or call.given is not None or (is_met and call.value is None):
            return None
        del self._calls[number]
        call.carrier = None
        return call

    def _give(self, number: bytes) -> None:
        call = self._calls.get(number)
        if call is not None and (call.given is not None or call.value is not None):
            return  # it does not listen any more, or never did
        if call is not None and self._value:
            call.carrier = None
            offer = Offer.__new__(Offer)
            offer.begin(call.topic, call.since, self._value, None)
            offer.begin_for(self, number)
            if call.give(offer):
                offer.offers += 1
                offer.value = b""  # the reply has it
                return
            del self._calls[number]
        self._messages.tell(LOST, number)

    def _pass_on(self, topic: bytes, number: bytes, value: bytes, form: bytes) -> None:
        """Give a value to all who subscribe here; of one with a number of the owner's, say whether anybody got it."""
        interest = self._interests.get(topic)
        subscribers = [] if interest is None else interest.subscribers()
        passing = Passing.__new__(Passing)
        passing.begin(topic, self._turn.now, value, None)
        if form != NIL:
            passing.value, passing.form = unwrapped(value, form)
        passing.begin_for(self, number)
        published = None if number == NIL else self._calls.get(number)
        passing.begin_as(published if isinstance(published, Publication) else None)
        if number == NIL or number[:1] == OURS:
            passing.answered = True
            self._junction.pass_on(passing, subscribers)
        else:
            self._passing[number] = passing
            if not self._junction.pass_on(passing, subscribers):
                passing.missed()

    def passed(self, number: bytes, outcome: int) -> None:
        """Say what became of a value for those who subscribe here: TOOK or LOST."""
        if self._passing.pop(number, None) is not None:
            self._messages.tell(outcome, number)

    def _recall(self, number: bytes) -> None:
        assert reached("a value is asked back")
        offered: NodeCall | None = self._passing.get(number)
        if offered is None:
            call = self._calls.get(number)
            if call is None or call.given is None:
                return
            offered = call.given  # which the call may forget meanwhile
            if offered.given_to is None:
                offered.remember(call)
        offered.ask_back(offered.abandoned)  # asked for twice, its sender was told

    def comes_before(self, heir: Pausable) -> None:
        """Hear nothing of the owner's successor before the last that the owner has handed out."""
        if not self._is_retired:
            self._heir = heir
            heir.pause()

    def retired(self) -> None:
        """That was the last."""
        self._is_retired = True
        heir, self._heir = self._heir, None
        if heir is not None:
            heir.go_on()

    def close(self) -> None:
        """The link has ended: issue its calls again."""
        assert reached("a link has ended")
        self.retired()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if call.carrier is None:
                continue  # it has a value already
            call.carrier = None
            call.bereft()
        censuses, self._censuses = self._censuses, {}
        for census in censuses.values():
            census.end()  # by which younger calls may be let go, so the older ones come first
        self._passing = {}
        for interest in [*self._interests.values()]:
            interest.lost(self)
