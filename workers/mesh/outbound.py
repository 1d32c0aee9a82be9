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
from workers.calls.doubt import LOST_LISTENER, LOST_OWNER
from workers.calls.inquiries import Interest, Question
from workers.calls.publication import Publication
from workers.engine.loop import Turn
from workers.engine.points import reached
from workers.mesh.kin import Kin
from workers.mesh.messages import (
    ALSO,
    BUSY,
    CENSUS,
    COUNTED,
    DOUBT,
    GIVE,
    LAGGED,
    LISTEN,
    LONG,
    LOST,
    MET,
    OF,
    OFFER,
    OUT,
    PARTING,
    PUBLISH,
    RECALL,
    REFUSED,
    RETIRED,
    SEND,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
    TAKEN,
    TOOK,
    UNACKED,
    WITHDRAW,
    WITHDRAWN,
    Messages,
    limit_of,
    unwrapped,
    wrapped,
)
from workers.mesh.readiness import Pausable
from workers.stats.hands import NOBODY, Hand

NONE: Final = values.pack(0)

OURS: Final = b"\xcf"
"""What our numbers begin with; those that the owner gives begin otherwise."""

_BYTES: Final = [bytes((low,)) for low in range(256)]


class Offer(NodeCall):
    """A value that the owner of its topic offers to a listening client of ours."""

    __slots__ = ("home", "number", "outbound", "sent_as")

    def begin_for(self, outbound: Outbound, number: bytes, home: bytes, sent_as: bytes) -> None:
        """Set up what a call has besides begin(): it is the call `sent_as` that number by the worker `home`, if any."""
        self.outbound = outbound
        self.number = number
        self.home = home
        self.sent_as = sent_as

    def write_down(self, hand: Hand) -> None:
        self.outbound.write_down(self, hand)

    def met(self) -> None:
        if self.home:
            self.outbound.tell_home(self, TAKEN)
        self.became(TOOK)

    def missed(self) -> None:
        self.answered = True
        if self.too_long:
            self.outbound.refused(self.number, self.too_long)
        else:
            self.became(LOST)

    def awaits_ack(self, is_so: bool) -> None:
        self.outbound.unacked(self.number, is_so)

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


class Numbers:
    """Those by which others know the calls of one worker, in the order in which these were sent on, whatever way."""

    __slots__ = ("_head", "_next")

    def __init__(self) -> None:
        self._next = 0
        self._head = b""

    def draw(self) -> bytes:
        """Return one that no other call has or will have, encoded."""
        low = self._next & 0xFF
        if not low:
            self._head = OURS + (self._next >> 8).to_bytes(7, "big")
        self._next += 1
        return self._head + _BYTES[low]


class Outbound(Carrier):
    """The calls of our clients that wait at one other worker, and the values that it offers to them."""

    __slots__ = (
        "_calls",
        "_censuses",
        "_heir",
        "_home",
        "_interests",
        "_is_retired",
        "_junction",
        "_kin",
        "_messages",
        "_next_home",
        "_next_sent_as",
        "_numbers",
        "_passing",
        "_sent_as",
        "_since",
        "_since_bytes",
        "_turn",
        "_value",
        "parts",
    )  # fmt: skip

    def __init__(
        self,
        messages: Messages,
        turn: Turn,
        junction: Junction,
        numbers: Numbers,
        place: Place | None,
        kin: Kin | None,
    ) -> None:
        """`place` is that of an owner; without one, the other end only asks us.

        `numbers` are this worker's, and `kin` are all siblings, if it is one.
        """
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
        self._kin = kin
        self._value = b""  # what was given last, and whose it is, if its sender is at a sibling of ours
        self._home = self._sent_as = NOBODY
        self._next_home = self._next_sent_as = NOBODY
        self._numbers = numbers
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
        number = self._numbers.draw()
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

    def ask_back(self, call: ClientCall) -> None:
        self._messages.tell(WITHDRAW, call.number, FALSE)

    def withdraw(self, call: ClientCall) -> bool:
        assert call.carrier is self, "it waits there"
        del self._calls[call.number]
        call.carrier = None
        self._messages.tell(WITHDRAW, call.number, TRUE)
        return call.value is None  # a value on its way to a listener goes to somebody else

    def catch_up(self) -> None:
        if self._kin is None:
            self._messages.catch_up()
        else:
            self._kin.catch_up()  # any of them may know

    def ask_census(self, call: Question, topic: bytes) -> None:
        self.ask(CENSUS, call, topic)

    def ask(self, kind: int, question: Question, about: bytes) -> None:
        """Ask something that is COUNTED once it is done: CENSUS, VISIT or INQUIRE of messages.py."""
        question.carrier = self
        question.number = self._numbers.draw()
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

    def unacked(self, number: bytes, is_so: bool) -> None:
        """Say that a client of ours is to acknowledge the value that it has, or has given it back."""
        self._messages.tell(UNACKED, number, TRUE if is_so else FALSE)

    def refused(self, number: bytes, limit: int) -> None:
        """Say that a value is too long for one of our clients, which takes so many bytes."""
        self._calls.pop(number, None)
        self._messages.tell(LONG, number, values.pack(limit))

    # What the other says.

    def hear(self, kind: int, message: list[bytes]) -> None:
        """Deal with a message to the worker of the caller."""
        if kind == GIVE:
            self._value = message[2]
            self._home, self._sent_as = self._next_home, self._next_sent_as
            self._next_home = NOBODY
            self._give(message[1])
        elif kind == MET:
            call = self._no_longer_waiting(message[1], True)
            if call is not None:
                call.answered = True
                call.met()
        elif kind == ALSO:
            self._give(message[1])
        elif kind == OF:
            self._next_home, self._next_sent_as = message[2], message[1]
        elif kind == TAKEN:
            if self._kin is not None:
                self._kin.taken(message[2], message[1])
        elif kind == DOUBT:
            if message[2] == NIL:
                self.doubted(message[1])
            elif self._kin is not None:
                self._kin.doubted(message[2], message[1])
        elif kind == OUT:
            call = self._calls.get(message[1])
            if call is not None:
                call.is_out = True
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
            offer.begin_for(self, number, self._home, self._sent_as)
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
        passing.begin_for(self, number, self._next_home, self._next_sent_as)
        self._next_home = NOBODY
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

    # What becomes of sends, whoever says so.

    def taken(self, number: bytes) -> None:
        """Somebody has the value of a send that waits there."""
        call = self._no_longer_waiting(number, True)
        if call is not None:
            call.answered = True
            call.met()

    def doubted(self, number: bytes) -> None:
        """Somebody may have it, of whom nobody will hear."""
        call = self._calls.get(number)
        if call is not None:
            call.doubt(LOST_LISTENER)

    def doubt_all(self) -> None:
        """Somebody may have any of the sends that wait there."""
        for call in self._calls.values():
            if _has_outcome(call):
                call.doubt(LOST_LISTENER)

    def tell(self, kind: int, number: bytes, life: bytes) -> None:
        """Say something to the other end."""
        self._messages.tell(kind, number, life)

    def tell_home(self, offer: Offer, kind: int) -> None:
        """Say to the worker of a sender that a client of ours has its value, or may have it: TAKEN or DOUBT."""
        kin = self._kin
        if kin is None:
            return
        if offer.home != kin.life:
            kin.tell(offer.home, kind, offer.sent_as, self._messages.life)
        elif kind == TAKEN:
            self.taken(offer.sent_as)
        else:
            self.doubted(offer.sent_as)

    def write_down(self, offer: Offer, hand: Hand) -> None:
        """A client of ours is about to have a value that came from there."""
        if not self._messages.abroad:
            hand.add(self._messages.life, offer.number, offer.home, offer.sent_as)

    @property
    def is_over(self) -> bool:
        """Whether the link has ended, and all that waited there or was handed out is decided."""
        return self._messages.closed and not (self._calls or self._passing)

    # The end.

    def close(self) -> None:
        """The link has ended: issue its calls again; of a sibling, sends only once it is known what became of them."""
        assert reached("a link has ended")
        self.retired()
        calls, self._calls = self._calls, {}
        asks = False
        for number, call in calls.items():
            is_send = _has_outcome(call)
            if self._kin is not None and (is_send or call.carrier is None):
                self._calls[number] = call
                asks = asks or is_send
            elif is_send and not self.parts:
                call.doubt(LOST_OWNER)
        for number, call in calls.items():
            if number not in self._calls and call.carrier is not None:
                call.carrier = None
                call.returned()
        if asks and self._kin is not None:
            self._kin.ask_all(self.place, self._messages.life, self._release)
        censuses, self._censuses = self._censuses, {}
        for census in censuses.values():
            census.end()  # by which younger calls may be let go, so the older ones come first
        if self._kin is None:
            self._passing = {}
        for interest in [*self._interests.values()]:
            interest.lost(self)

    def _release(self, is_sure: bool) -> None:
        """All siblings have told what they know, or `is_sure` is false: what still waits is offered elsewhere."""
        assert self._kin is not None, "they are asked"
        is_sure = is_sure and self._turn.hand.of(self._messages.life) is not None
        for number, call in [*self._calls.items()]:
            if call.carrier is self:
                del self._calls[number]
                call.carrier = None
                if call.is_out or not is_sure:
                    call.doubt(LOST_OWNER)
                call.returned()

    def settle_all(self) -> None:
        """The owner is dead, and its siblings ask: take back what it gave us, or tell them who may yet have it.

        The end of the link to it may not have come here yet: all that a process has open is closed one by one.
        """
        offers = [(call, call.given) for call in self._calls.values() if call.given is not None]
        for call, offered in offers:
            assert isinstance(offered, Offer), "it came from there"
            if offered.given_to is None:
                offered.remember(call)
            self._take_back(offered, call.given is offered)
        for passing in [*self._passing.values()]:
            self._take_back(passing, True)

    def _take_back(self, offer: Offer, is_open: bool) -> None:
        if is_open and not offer.answered and not offer.ask_back(offer.abandoned) and offer.home:
            self.tell_home(offer, DOUBT)


def _has_outcome(call: ClientCall) -> bool:
    """Return whether it is a send, whose client is told what became of its value: a publication is handed out."""
    return call.value is not None and not isinstance(call, Publication)
