"""What another worker asks of us: calls of its clients wait here, and get values, since we own their topics."""

from __future__ import annotations

from typing import Final

from skywalker.errors import Busy
from skywalker.junction import Call, Junction
from skywalker.limits import MAX_FRAME, MAX_TIMEOUT_MS
from skywalker.wire import values
from skywalker.wire.junction import NIL, TRUE
from skywalker.wire.pubsub import MAX_PAYLOAD, bus_value
from workers.calls import census
from workers.calls.call import NodeCall
from workers.calls.doubt import LOST_LISTENER
from workers.calls.interests import Interests
from workers.calls.ledger import Ledger
from workers.calls.publication import Publication
from workers.calls.worker_states import Standing
from workers.engine.loop import Turn
from workers.mesh.messages import (
    ALSO,
    BUSY,
    CENSUS,
    COUNTED,
    DOUBT,
    GIVE,
    LISTEN,
    LONG,
    LOST,
    MET,
    OF,
    OUT,
    PUBLISH,
    RECALL,
    REFUSED,
    RETIRED,
    SEND,
    SUBSCRIBE,
    TOOK,
    UNACKED,
    WITHDRAW,
    WITHDRAWN,
    Messages,
    limit_of,
    unwrapped,
)
from workers.mesh.remote_interests import RemoteInterests, count_of
from workers.mesh.states import (
    ASKED_BACK,
    GAVE,
    GIVEN,
    INBOUND_CALL,
    LET_GO,
    NO_ROOM,
    PARKED,
    RESUMED,
    WAITING,
    WITHDRAWING,
)
from workers.stats.hands import NOBODY, Hand
from workers.stats.log import Log

OURS: Final = b"\xd3"
"""What our own numbers begin with; those of the other worker begin otherwise."""

LONGEST_PAYLOAD: Final = len(bus_value(bytes(MAX_PAYLOAD)))

MAX_TIMEOUT_S: Final = MAX_TIMEOUT_MS / 1000


class InboundCall(NodeCall):
    """A call of another worker's client, or a value for its subscribers. That worker runs its clock."""

    __slots__ = ("inbound", "is_told", "number", "state", "unacked")

    def begin_for(self, inbound: Inbound, number: bytes) -> None:
        """Set up what a call has besides begin()."""
        self.inbound = inbound
        self.number = number
        self.is_told = False  # of a send: who gave its value to a client has told its worker
        self.unacked = False  # of a listener: its client has the value, and is to acknowledge it
        self.state = WAITING

    def become(self, event: int) -> None:
        """Go on to the state that this event leads to."""
        self.state = INBOUND_CALL.after(self.state, event)

    def give(self, send: Call) -> bool:
        assert isinstance(send, NodeCall)
        return self.inbound.give(self, send)

    def met(self) -> None:
        self.inbound.let_go(self)
        self.value = b""
        if not self.is_told:
            self.inbound.messages.tell(MET, self.number)

    def missed(self) -> None:
        inbound = self.inbound
        if self.state == WITHDRAWING:
            inbound.give_back(self)
        elif self.too_long:
            inbound.refuse(self)
        elif inbound.standing.leaving or inbound.standing.replaced:
            inbound.turn_away(self)
        else:
            self.given_to = None  # nobody has the value any more
            inbound.junction.resume(self)

    def given_here(self, listener: NodeCall) -> None:
        self.remember(listener)

    def write_down(self, hand: Hand) -> None:
        messages = self.inbound.messages
        if not messages.abroad:
            hand.add(hand.life, NOBODY, messages.life, self.number)

    def doubt(self, why: str) -> None:
        self.inbound.messages.tell(DOUBT, self.number, NIL)

    def awaits_ack(self, is_so: bool) -> None:
        if is_so and not self.inbound.messages.abroad:
            self.inbound.messages.tell(OUT, self.number)

    def announce(self, messages: Messages) -> None:
        """Its value goes to another worker next: have that one know whose it is, or its own worker that it is gone."""
        ours = self.inbound.messages
        if ours.abroad:
            return
        if messages.abroad:
            ours.tell(OUT, self.number)
        else:
            messages.tell(OF, self.number, ours.life)

    def recall(self, told: bool) -> bool:
        self.inbound.messages.tell(RECALL, self.number)
        return False

    def catch_up(self) -> None:
        self.inbound.messages.catch_up()


class InboundPublication(Publication):
    """What another worker's client publishes, where its topic is owned."""

    __slots__ = ("_spreads", "messages", "turn")

    def begin_from(self, messages: Messages, turn: Turn) -> None:
        """Set up what it has besides begin() and begin_as(): where it came from."""
        self.messages = messages
        self.turn = turn
        self._spreads = False  # to others than that

    def goes_to(self, messages: object) -> bytes:
        if messages is self.messages:
            return self.number
        self._spreads = True
        return NIL

    def met(self) -> None:
        self.done = True
        if self._spreads:
            self.turn.acks.append(self)
        else:
            self.acknowledge()  # it is written behind the value

    def acknowledge(self) -> None:
        """All who listen were written to."""
        self.messages.tell(MET, self.number)


class Inbound:
    """The calls of one worker's clients that wait here, and the values that were given to its listeners."""

    __slots__ = (
        "_calls",
        "_expected",
        "_giving",
        "_ledger",
        "_parked",
        "_since",
        "_since_bytes",
        "_turn",
        "junction",
        "messages",
        "remote_interests",
        "standing",
    )  # fmt: skip

    def __init__(
        self,
        messages: Messages,
        turn: Turn,
        junction: Junction,
        ledger: Ledger,
        standing: Standing,
        interests: Interests,
        log: Log,
    ) -> None:
        self.messages = messages
        self.junction = junction
        self.standing = standing
        self._turn = turn
        self._ledger = ledger
        # By the other's number, those that wait, and listeners that were given a value which has no outcome yet.
        self._calls: dict[bytes, InboundCall] = {}
        self._parked: dict[InboundCall, None] = {}  # listeners that a value came for while there was no room
        self._giving: NodeCall | None = None  # whose value was given last in this turn
        self._since_bytes = b""  # calls that were read at once have one time, which is decoded once
        self._since = 0.0
        self._expected = 0  # of the values for subscribers: how many had a number
        self.remote_interests = RemoteInterests(messages, turn, junction, standing, interests, log, self.expect)

    def hear(self, kind: int, message: list[bytes]) -> None:
        """Deal with a message to the owner of a topic."""
        if kind == LISTEN:
            group = message[4]
            self._issue(message[1], message[2], message[3], None, None if group == NIL else group)
        elif kind == SEND:
            self._issue(message[1], message[2], message[3], message[4], None)
        elif kind == TOOK:
            self._decided(message[1], True, 0)
        elif kind == LOST:
            self._decided(message[1], False, 0)
        elif kind == LONG:
            self._decided(message[1], False, limit_of(message[2]))
        elif kind == UNACKED:
            listener = self._calls.get(message[1])
            if listener is not None:
                listener.unacked = message[2] == TRUE
        elif kind == WITHDRAW:
            self._withdraw(message[1], message[2] == TRUE)
        elif kind == PUBLISH:
            self._publish(message[1], message[2], message[3], message[4])
        elif kind == SUBSCRIBE:
            self.remote_interests.ask(message[1], count_of(message[2]))
        elif kind == CENSUS:
            info = census.info(self.junction, message[2], self._turn.now)
            self.messages.tell(COUNTED, message[1], values.pack(info))

    def _issue(self, number: bytes, since: bytes, topic: bytes, value: bytes | None, group: bytes | None) -> None:
        if since != self._since_bytes:
            self._since, self._since_bytes = values.unpack(since), since
        came = self._since
        if self.messages.abroad:
            if number in self._calls or number[:1] == OURS:
                raise ValueError("the number of another call")
            if value is not None and len(value) > MAX_FRAME:
                raise ValueError("a value that no client can send")
            came = self._turn.now + max(-MAX_TIMEOUT_S, min(0.0, came))
        call = InboundCall.__new__(InboundCall)
        call.begin(topic, came, value, group)
        call.begin_for(self, number)
        cost = call.cost()
        try:
            self._ledger.admit(cost)
        except Busy:
            self.messages.tell(BUSY, number)
            return
        self._calls[number] = call
        self._ledger.add(cost)
        self._meet(call)

    def _meet(self, call: InboundCall) -> None:
        if self.standing.leaving or self.standing.replaced:
            self.turn_away(call)
        elif not call.meet(self.junction):
            self.junction.wait(call)

    def turn_away(self, call: InboundCall) -> None:
        """Do not have it meet anybody, since its topic is our successor's.

        A worker of this node is told about that one, if it is there. Any other issues its calls again when the link
        ends.
        """
        if self.standing.replaced and not self.messages.abroad:
            self.give_back(call)

    def give_back(self, call: InboundCall) -> None:
        """Let go of a call that has met nobody, and say so."""
        call.answered = True
        self.let_go(call)
        self.messages.tell(WITHDRAWN, call.number)
        if call.value is not None:
            call.value = b""  # a listener that it was asked back from refers to it

    def refuse(self, send: InboundCall) -> None:
        """Let go of a send whose value is too long for who listens, and say so."""
        send.answered = True
        self.let_go(send)
        send.value = b""
        self.messages.tell(REFUSED, send.number, values.pack(send.too_long))

    def _publish(self, number: bytes, topic: bytes, value: bytes, form: bytes) -> None:
        standing = self.standing
        if standing.replaced and not self.messages.abroad:
            self.messages.tell(WITHDRAWN, number)
            return
        if standing.leaving or standing.replaced:
            return  # our successor will hand it out
        publication = InboundPublication.__new__(InboundPublication)
        publication.begin(topic, self._turn.now, value, None)
        if form != NIL:
            publication.value, publication.form = unwrapped(value, form)
        if publication.value is not None and len(publication.value) > LONGEST_PAYLOAD:
            raise ValueError("a payload that no client can publish")
        publication.begin_as(0)
        publication.begin_from(self.messages, self._turn)
        publication.number = number
        if publication.hand_out(self.junction):
            publication.met()

    def expect(self, topic: bytes, send: NodeCall) -> bytes:
        """Return a number for a value that subscribers are given; the other worker says later whether one got it."""
        self._expected += 1
        delivery = InboundCall.__new__(InboundCall)
        delivery.begin(topic, send.since, None, None)
        delivery.begin_for(self, OURS + self._expected.to_bytes(8, "big"))
        self._calls[delivery.number] = delivery
        if isinstance(send, InboundCall):
            send.announce(self.messages)
        self._give(delivery, send)
        return delivery.number

    def let_go(self, call: InboundCall) -> None:
        """Forget a call that was answered."""
        call.become(LET_GO)
        del self._calls[call.number]
        self._ledger.remove(call.cost())

    def give(self, listener: InboundCall, send: NodeCall) -> bool:
        """Give a value to a listener; its worker says later whether the client got it."""
        messages = self.messages
        if messages.closed:
            return False
        if messages.congested():
            listener.become(NO_ROOM)
            self._parked[listener] = None
            return False
        if isinstance(send, Publication):
            send.goes_to(messages)
        self._ledger.remove(listener.cost())
        self._give(listener, send)
        # A value that many get at once crosses once.
        if send is self._giving:
            messages.tell(ALSO, listener.number)
        else:
            self._giving = send
            if isinstance(send, InboundCall):
                send.announce(messages)
            messages.tell(GIVE, listener.number, send.value)
        return True

    def _give(self, listener: InboundCall, send: NodeCall) -> None:
        assert listener.given is None, "one value at a time"
        assert send.value is not None, "a send has one"
        listener.become(GAVE)
        listener.given = send
        send.hold()
        send.remember(listener)

    def _decided(self, number: bytes, took: bool, limit: int) -> None:
        listener = self._calls.get(number)
        if listener is not None and listener.state == GIVEN:
            listener.become(LET_GO)
            send = listener.decided()
            del self._calls[number]
            if took:
                if isinstance(send, InboundCall) and not (send.answered or self.messages.abroad):
                    send.is_told = not send.inbound.messages.abroad
                self.junction.confirm(send)
            else:
                send.too_long = max(send.too_long, limit)
                if listener.unacked:
                    send.doubt(LOST_LISTENER)
                self.junction.lost(send)

    def doubt_undecided(self) -> None:
        """Say of what was given to somebody and has no outcome that there will be none from here."""
        for call in self._calls.values():
            if call.offers and not call.answered:
                call.doubt(LOST_LISTENER)

    def is_decided(self) -> bool:
        """Return whether every value that was given to those who listen there, or came from there, has its outcome."""
        return all(call.state != GIVEN and not call.offers for call in self._calls.values())

    def _withdraw(self, number: bytes, final: bool) -> None:
        call = self._calls.get(number)
        if call is None or call.state == GIVEN:
            return  # a value for it, or a word about it, is on its way
        if self.junction.withdraw(call) or call.state == PARKED:
            self._parked.pop(call, None)
            self.let_go(call)
            if not final:
                self.messages.tell(WITHDRAWN, number)
        elif final:
            self.let_go(call)
            call.abandon()
        else:
            call.become(ASKED_BACK)
            call.ask_back(False)

    def flushed(self) -> None:
        """All that was said is written, or queued: have those meet somebody that there was no room for."""
        self._giving = None
        if self.remote_interests.delayed:
            self.remote_interests.flushed()
        if self._parked and not self.messages.congested():
            parked, self._parked = self._parked, {}
            for listener in parked:
                listener.become(RESUMED)
                self._meet(listener)

    def retire(self) -> None:
        """Hand out nothing any more: the other worker asks our successor."""
        self.remote_interests.retire()
        self.messages.tell(RETIRED, NIL)

    def close(self) -> None:
        """The link has ended: those calls will be issued again, or their clients are gone."""
        self.remote_interests.close()
        calls, self._calls = self._calls, {}
        self._parked.clear()
        self._giving = None
        for call in calls.values():
            if call.state != GIVEN:
                call.become(LET_GO)
                self.junction.withdraw(call)
                self._ledger.remove(call.cost())
                call.abandon()
        # Of a sibling it is known what it was doing; what another node was given may be anybody's.
        handed = None if self.messages.abroad else self._turn.hand.of(self.messages.life)
        taken: dict[bytes, bool] = {}
        for each in handed or ():
            if each.owner == self._turn.hand.life:
                taken[each.listener] = each.is_taken or taken.get(each.listener, False)
        # Only now, since a value that is lost may go to the next in the line.
        for call in calls.values():
            if call.state == GIVEN:
                call.become(LET_GO)
                send = call.decided()
                if taken.get(call.number, False):
                    self.junction.confirm(send)
                    continue
                if handed is None or call.number in taken or call.unacked:
                    send.doubt(LOST_LISTENER)
                self.junction.lost(send)
