"""The calls of a node's own clients, from arrival to answer.

Each runs on its caller's clock, and only here, at the worker that has the caller's connection, whoever owns the topic:
so a caller is answered in time even if the owner hangs, and its calls can be issued again if the owner dies.

A send that may just be meeting somebody cannot end by our word alone, or its value might be taken although its sender
is told that nobody came. It is *ending* then: its value is asked back from all who may have it, and their word, or its
owner's, decides. That is waited for until its time is over, and GRACE_S more; then its sender is told that it may have
been taken, and that nobody knows. states.py has all that can become of it.
"""

from __future__ import annotations

from typing import Final

from skywalker.errors import Busy, Cancelled, Draining, RequestError, TooLarge
from skywalker.journal.record import BUSY, CANCELLED, DRAINING, ERROR, MET, PROMPT, TIMED_OUT, UNKNOWN_OUTCOME
from skywalker.journal.record import HERE as ROUTED_HERE
from skywalker.journal.record import SEND as RECORDED_SEND
from skywalker.junction import Call, Junction
from skywalker.limits import MAX_FRAME, WAITING_CALL_BYTES
from skywalker.members import Place
from skywalker.wire import junction as wire
from skywalker.wire.junction import RECV, SEND, TAKE, TRUE, reply
from workers.calls.doubt import SILENT_LISTENER, SILENT_OWNER, unknown
from workers.calls.inquiries import Interest, Question
from workers.calls.journal import Journal
from workers.calls.states import ARRIVED, CLOSED, ENDING, GAVE, GIVEN_UP, HERE, KEPT, LIFE, NO_ROOM, RETURNED, SENT_ON
from workers.calls.worker_states import Standing
from workers.engine.loop import Turn
from workers.stats.hands import Hand

REPLY_BYTES: Final = 1 + len(RECV)
"""Of the reply with a value, besides that and the id: :take! is as long as :recv!."""

GRACE_S: Final = 0.03
"""Seconds for the owner's last word; with a bucket of deadlines it keeps within the promised 50 ms."""


class NodeCall(Call):
    """One of them: a client's of ours, of another worker, or what one offers to ours."""

    __slots__ = ("abandoned", "form", "given", "given_to", "too_long")

    def begin(self, topic: bytes, since: float, value: bytes | None, group: bytes | None) -> None:
        Call.begin(self, topic, since, value, group)
        # Of a send: whether its time is over, so that nobody may have the value any more to whom it is not being
        # written; and the listeners that must be asked then: of other workers' clients, and those to whom it could not
        # be written at once, or who are to acknowledge it.
        self.abandoned = False
        self.given_to: list[NodeCall] | None = None
        self.too_long = 0  # once somebody could not take its value for its length: bytes that it might have
        self.form = b""  # of what was published with them: hint and flags, and the payload if that is compressed
        self.given: NodeCall | None = None  # of a listener: whose value it was given, until that has its outcome

    def cost(self) -> int:
        """Return the bytes of memory that are counted for it while it waits."""
        value = self.value if self.value is not None else self.group
        return WAITING_CALL_BYTES + len(self.topic) + (0 if value is None else len(value))

    def meet(self, junction: Junction) -> bool:
        """Meet whoever is in the junction; return False if nobody is."""
        return junction.listen(self) if self.value is None else junction.send(self)

    def hold(self) -> None:
        """Run the caller's clock from now on, if it does not yet: this turn will not bring the outcome."""

    def sender(self) -> NodeCall:
        """Return the send whose value this listener was given."""
        assert self.given is not None, "it was given a value"
        return self.given

    def decided(self) -> NodeCall:
        """Return the same, and forget it: the outcome is known."""
        send = self.sender()
        self.given = None
        return send

    def recall(self, told: bool) -> bool:
        """Take back the value that this listener was given; return False if that is too late, or not known yet.

        What this turn is still to write is taken back only if its sender was `told` that nobody came.
        """
        raise NotImplementedError

    def catch_up(self) -> None:
        """Hear now what has been said already of the value that this listener was given."""

    def remember(self, listener: NodeCall) -> None:
        """This listener may have the value, and must be asked for it if nobody may have it any more."""
        if self.given_to is None:
            self.given_to = []
        self.given_to.append(listener)

    def given_here(self, listener: NodeCall) -> None:
        """A client of this worker has been given the value, and will have it unless it is recalled."""

    def write_down(self, hand: Hand) -> None:
        """The value is about to be written: see that whoever waits to hear of it finds that, if we die just then."""

    def doubt(self, why: str) -> None:
        """Somebody may have taken the value and nobody will say so: from now on it is met, or its outcome unknown."""

    def awaits_ack(self, is_so: bool) -> None:
        """A client of this worker has the value, and is to acknowledge it; or, if not `is_so`, has given it back."""

    def place_for(self, caller: object) -> int:
        """Return which of all that `caller` asks to have acked this is, counted from 1; 0 if it is another's."""
        return 0

    def ask_back(self, told: bool) -> bool:
        """Take the value of a send, whose caller may have been `told` so, back from where it is not being written yet.

        If that is everywhere, this returns True, and the send has missed() unless it is answered; else the word of
        those who may have it decides.
        """
        self.abandoned = True
        is_back = True
        for listener in self.given_to or ():
            if listener.given is self:
                is_back = listener.recall(told) and is_back
        if is_back and not self.answered:
            self.missed()
        return is_back

    def abandon(self) -> None:
        """Its caller expects nothing more of it: take the value back, if it has one."""
        self.answered = True
        self.ask_back(True)
        if self.value is not None:
            self.value = b""  # who has been given it may refer to this call for long


class Routing:
    """Who decides where calls go, as the calls themselves see it: router.py has how."""

    __slots__ = ()

    def issue(self, call: ClientCall) -> None:
        """Have a call meet somebody, or wait where its topic is owned. Raises Busy if a new one has no room."""
        raise NotImplementedError

    def publish(self, call: ClientCall) -> bool:
        """Have a publication handed out where its topic is owned; return whether that is done, else it has met()."""
        raise NotImplementedError

    def resume(self, call: ClientCall) -> None:
        """Have a send that is held, and whose listeners here are all lost, go on waiting."""
        raise NotImplementedError

    def withdraw(self, call: ClientCall) -> bool:
        """Take a call back from where it waits. Returns False of a send that may just be meeting somebody."""
        raise NotImplementedError


class Caller:
    """Who calls are answered to: one connection, as its calls see it; session.py and pubsub.py have what it does."""

    __slots__ = (
        "connection", "counters", "door", "gone", "journal", "junction", "knows_errors", "max_reply", "routing",
        "standing", "turn",
    )  # fmt: skip

    def __init__(self, turn: Turn, junction: Junction, routing: Routing, standing: Standing) -> None:
        self.turn = turn
        self.counters = turn.counters
        self.junction = junction
        self.routing = routing
        self.standing = standing
        self.gone = False  # expects no more of any call
        self.knows_errors = True  # can tell an error from a value
        self.max_reply = MAX_FRAME  # bytes of a frame
        self.journal: Journal | None = None
        # By which number the journal knows this connection, and at which door its client came in.
        self.connection = 0
        self.door = 0

    def keep(self, call: ClientCall) -> None:
        """Keep track of a call that does not end in this turn, and have its clock run."""
        raise NotImplementedError

    def release(self, call: ClientCall) -> None:
        """Forget a call that was kept."""
        raise NotImplementedError

    def postpone(self, call: ClientCall, seconds: float) -> None:
        """Look at a call in so many seconds rather than at its deadline."""
        raise NotImplementedError

    def admit(self, cost: int) -> None:
        """Raise Busy if no more calls may wait here, or none that takes so many bytes."""
        raise NotImplementedError

    def congested(self) -> bool:
        """Return whether there is no room for more values now."""
        raise NotImplementedError

    def park(self, listener: ClientCall) -> None:
        """Have `listener` listen again once there is room."""
        raise NotImplementedError

    def unpark(self, listener: ClientCall) -> bool:
        """Forget a listener that may be parked; return whether it was."""
        raise NotImplementedError

    def push_value(self, listener: ClientCall) -> None:
        """Write listener.chunk, which holds the value it was given, and tell the junction what became of it."""
        raise NotImplementedError

    def take_back(self, listener: ClientCall, told: bool) -> bool:
        """Do not write that value, as recall() says."""
        raise NotImplementedError

    def published(self, call: ClientCall) -> None:
        """A publication is in effect."""
        raise NotImplementedError

    def reply(self, method: bytes, id: bytes, result: bytes) -> None:
        """Answer the call `id`."""
        raise NotImplementedError

    def reply_error(self, method: bytes, id: bytes, error: RequestError, timed_out: bytes = wire.TIMED_OUT) -> None:
        """Answer the call `id` with an error, or as if its time were over, by `timed_out`: see session.py."""
        raise NotImplementedError


class Carrier:
    """Where calls wait whose topic another worker owns: mesh/outbound.py has what is asked of one that can be asked.

    `place` is that worker's, and `grace_s` the seconds in which its last word on a call should be here.
    """

    __slots__ = ("grace_s", "place", "route")

    def __init__(self, place: Place | None, grace_s: float) -> None:
        self.place = place
        self.grace_s = grace_s
        self.route = ROUTED_HERE  # or whether that is a sibling's or another node's

    def congested(self) -> bool:
        """Return whether the owner is so far behind that it is asked nothing new."""
        raise NotImplementedError

    def forward(self, call: ClientCall) -> None:
        """Have a call meet somebody, or wait, at the owner."""
        raise NotImplementedError

    def ask_back(self, call: ClientCall) -> None:
        """Ask the owner to let a call go that has met nobody; its word decides, and then the call has returned()."""
        raise NotImplementedError

    def withdraw(self, call: ClientCall) -> bool:
        """Take a call back, whatever its owner says of it now. Returns False of a send that may be handed out."""
        raise NotImplementedError

    def catch_up(self) -> None:
        """Hear now what the owner has said already."""
        raise NotImplementedError

    def subscribe(self, interest: Interest) -> None:
        """Ask for the values of a topic, for as many as there are; interest.answered() says that this is in effect."""
        raise NotImplementedError

    def settle(self) -> None:
        """Say that all is subscribed to that was before there was this way to ask."""
        raise NotImplementedError

    def unsubscribe(self, interest: Interest) -> None:
        """Ask for no more of them; answered() tells that none comes any more."""
        raise NotImplementedError

    def forget_interest(self, interest: Interest) -> None:
        """Tell it nothing more."""
        raise NotImplementedError

    def ask_census(self, call: Question, topic: bytes) -> None:
        """Ask who waits on a topic."""
        raise NotImplementedError

    def forget_census(self, call: Question) -> None:
        """Do not wait for that any more."""
        raise NotImplementedError


class ClientCall(NodeCall):
    """A call of one of our clients: a send!, recv! or :take!, or what derives from this for pub/sub."""

    __slots__ = (
        "alarm", "caller", "cancelled_by", "carrier", "chunk", "deadline", "doubtful", "given_bytes", "id", "is_out",
        "number", "route", "state", "timed_out", "waited",
    )  # fmt: skip

    def begin_for(self, caller: Caller, id: bytes, timed_out: bytes, deadline: float) -> None:
        """Set up what a call has besides begin(). It ends at `deadline` with the result `timed_out`, in its dialect."""
        self.caller = caller
        self.id = id
        self.timed_out = timed_out
        self.deadline, self.alarm = deadline, 0  # or the end of the time for its owner's last word
        self.state = ARRIVED
        self.waited = False  # whether its caller kept track of it, at any time
        self.carrier: Carrier | None = None  # where it waits, if at another worker, with its number there
        self.number = b""
        self.route = ROUTED_HERE  # unless it went to another worker
        self.cancelled_by = b""  # the id of a :cancel of it
        self.doubtful = ""  # of a send: why somebody may have taken the value of whom nobody will hear
        self.is_out = False  # of a send: its owner has given the value to another node
        self.chunk = b""  # of a listener: the reply with the value that it was given
        self.given_bytes = 0  # of that value

    @property
    def method(self) -> bytes:
        """What its client called, as a reply repeats it."""
        if self.value is not None:
            return SEND
        return RECV if self.group is None else TAKE

    def kind(self) -> int:
        """Return which of metrics.KINDS it is."""
        if self.value is not None:
            return 0
        return 1 if self.group is None else 2

    def become(self, event: int) -> None:
        """Go on to the state that this event leads to; its caller keeps track of it as long as it should."""
        before = self.state
        after = LIFE.after(before, event)
        if HERE <= before <= ENDING:
            if after > ENDING:
                self.caller.release(self)
        elif HERE <= after <= ENDING:
            self.waited = True
            self.caller.keep(self)
        self.state = after

    def is_kept(self) -> bool:
        """Whether its caller keeps track of it, and its clock runs."""
        return HERE <= self.state <= ENDING

    def begin_waiting(self) -> None:
        """Keep track of a call that has to wait. Raises Busy if a new one has no room."""
        if not self.is_kept():
            self.caller.admit(self.cost())
            self.hold()

    def hold(self) -> None:
        """Keep track of it from now on, if not yet, unless its caller is gone."""
        if self.state == ARRIVED and not self.answered and not self.caller.gone:
            self.become(KEPT)

    def sent_on(self, carrier: Carrier, number: bytes) -> None:
        """It waits at another worker from now on, by this number, or there for that worker."""
        assert self.line is None, "it stands in no line here"
        self.become(SENT_ON)
        self.is_out = False
        self.carrier = carrier
        self.number = number

    def cost(self) -> int:
        return NodeCall.cost(self) + len(self.timed_out)

    def close(self, outcome: int) -> None:
        """Nothing more becomes of it; count what did: an outcome of record.py."""
        assert self.line is None, "it stands in no line"
        self.become(CLOSED)
        self.note(outcome)

    def note(self, outcome: int) -> None:
        """Count what became of it."""
        size = self.given_bytes if self.value is None else len(self.value)
        self.record(RECORDED_SEND + self.kind(), outcome, size)  # the kinds are in the order of those methods

    def record(self, method: int, outcome: int, size: int) -> None:
        """Count it, and have the journal, if there is one, say so of a call with a value of so many bytes."""
        caller = self.caller
        caller.counters.answered(self.topic, method, outcome, self.route, caller.turn.now - self.since)
        journal = caller.journal
        if journal is not None:
            codes = method | outcome << 8 | self.route << 16 | caller.door << 24
            journal.add(self.topic, self.since, size, caller.connection, codes)

    def give(self, send: Call) -> bool:
        assert isinstance(send, NodeCall)
        assert send.value is not None
        caller = self.caller
        if caller.gone:
            return False
        if caller.congested():
            self._wait_for_room()
            return False
        self.given = send
        self.become(GAVE)
        if len(send.value) + len(self.id) + REPLY_BYTES > caller.max_reply:
            caller.turn.later.append(self)
            return True
        self.chunk = reply(self.method, self.id, send.value)
        self.given_bytes = len(send.value)
        send.given_here(self)
        caller.push_value(self)
        return True

    def attend(self) -> None:
        """Give back a value that is too long for it, so that its sender hears so unless others have it, and listen on.

        Now, and not when it was given: first all others are who listen.
        """
        send = self.decided()
        send.too_long = max(send.too_long, self.caller.max_reply - len(self.id) - REPLY_BYTES)
        self.caller.junction.lost(send)
        self.listen_again()

    def recall(self, told: bool) -> bool:
        return self.caller.take_back(self, told)

    def listen_again(self) -> None:
        """Go on listening after a value that it couldn't get, or that is another's again, if its time is not over."""
        assert self.value is None, "it listens"
        assert self.given is None, "and that value is decided"
        if self.caller.gone:
            return
        if self.cancelled_by:  # when it had that value, of which its client was told
            self.close(CANCELLED)
            self.caller.reply_error(self.method, self.id, Cancelled("the call was cancelled by its client"))
        else:
            self.become(KEPT)
            self.caller.routing.issue(self)

    def _wait_for_room(self) -> None:
        try:
            self.begin_waiting()
        except Busy as error:
            self.fail(error)
        else:
            self.become(NO_ROOM)
            self.caller.park(self)

    def delivered(self) -> None:
        """Its client has the value that it was given."""
        self.close(MET if self.waited else PROMPT)

    def met(self) -> None:
        self.close(MET if self.waited else PROMPT)
        self.value = b""
        self.caller.reply(SEND, self.id, TRUE)
        if self.cancelled_by:
            self.caller.reply(wire.CANCEL, self.cancelled_by, wire.FALSE)

    def missed(self) -> None:
        if self.caller.gone:
            self.abandon()
        elif self.state == ENDING:
            self.over()
        elif self.too_long:
            self.refuse(self.too_long)
        else:
            self.given_to = None  # nobody has the value any more
            self.hold()
            self.caller.routing.resume(self)

    def expired(self) -> None:
        """Its time, or the time for a last word, is over."""
        if not self.is_kept():
            return
        if self.value is not None and self.state != ENDING:
            self.give_up()
            return
        if self.state == ENDING:
            self._hear_last_words()
        if self.is_kept():
            self.leave()

    def _hear_last_words(self) -> None:
        # It may be us who had no processor in the meantime, and times run out before anything is read.
        if self.carrier is not None:
            self.carrier.catch_up()
        for listener in [*(self.given_to or ())]:
            listener.catch_up()

    def give_up(self, cancelled_by: bytes = b"") -> None:
        """End without having met anybody, unless it just met somebody: its time is over, or a :cancel has that id.

        A :cancel does not hurry: what really became of the call is waited for as long as it has time.
        """
        self.cancelled_by = cancelled_by
        carrier = self.carrier
        turn = self.caller.turn
        grace = GRACE_S
        if carrier is not None and (self.value is not None or not cancelled_by):
            grace = carrier.grace_s
            self.become(GIVEN_UP)
            carrier.ask_back(self)
        elif self.withdraw():
            self.over()
            return
        else:
            self.become(GIVEN_UP)
            # A :cancel comes in the middle of a turn; and times run out as it begins, but the last words on one call,
            # which are heard then, may have had another one meet somebody.
            turn.acks.append(self)
        if self.is_kept():
            self.caller.postpone(self, max(0.0, self.deadline - turn.now) + grace)

    def acknowledge(self) -> None:
        """The turn in which it was given up is written: who was given the value in that has it, or must not get it."""
        if not self.answered:
            self.ask_back(False)

    def withdraw(self) -> bool:
        """Leave the place where it waits. Returns False of a send that may just be meeting somebody."""
        return self.caller.routing.withdraw(self)

    def leave(self, error: RequestError | None = None) -> None:
        """End now, with this error or because its time is over; as unknown if it may just have met somebody."""
        is_carried = self.carrier is not None
        if not self.withdraw() and self.value is not None:
            if self.offers > len([listener for listener in self.given_to or () if listener.given is self]):
                if self.state != ENDING:
                    self.give_up()  # somebody else has it who is written to in this very turn: that decides
                return
            self.answered = True
            if is_carried or not self.ask_back(True):
                self.end_unknown(SILENT_OWNER if is_carried else SILENT_LISTENER)
                return
        if error is None or self.cancelled_by:  # its client does not want it to go on elsewhere
            self.over()
        else:
            self.fail(error)

    def doubt(self, why: str) -> None:
        self.doubtful = why

    def returned(self) -> None:
        """It met nobody where it waited, and waits there no more: end if it is to, else go on elsewhere."""
        assert self.carrier is None, "it has been let go there"
        self.become(RETURNED)
        if self.state == ENDING:
            self.over()
        elif self.caller.standing.leaving:
            self.fail(Draining("this worker is going away"))
        else:
            self.caller.routing.issue(self)

    def refuse(self, limit: int) -> None:
        """Answer a send whose value is too long for who listens: they could take so many bytes."""
        if self.state == ENDING:
            self.over()
            return
        size = 0 if self.value is None else len(self.value)
        text = f"value of {size} bytes, whoever listens takes {limit} at most"
        self.fail(TooLarge(text, {"size": size, "limit": limit}))

    def over(self) -> None:
        """It met nobody of whom it is known, and never will: answer with what it ends with."""
        assert self.carrier is None, "it waits nowhere any more"
        assert self.given is None, "and has no value"
        if self.doubtful:
            self.end_unknown(self.doubtful)
            return
        self.close(CANCELLED if self.cancelled_by else TIMED_OUT)
        self.abandon()
        if self.cancelled_by:
            self.caller.reply_error(self.method, self.id, Cancelled("the call was cancelled by its client"))
            self.caller.reply(wire.CANCEL, self.cancelled_by, wire.TRUE)
        else:
            self.caller.reply(self.method, self.id, self.timed_out)

    def end_unknown(self, why: str) -> None:
        """Its value may have been taken, and nobody will say so in time: answer with that, and why."""
        assert self.carrier is None, "nobody is asked any more"
        self.close(UNKNOWN_OUTCOME)
        self.abandon()
        self.caller.reply_error(self.method, self.id, unknown(why), self.timed_out)
        if self.cancelled_by:
            self.caller.reply(wire.CANCEL, self.cancelled_by, wire.FALSE)

    def fail(self, error: RequestError) -> None:
        """Answer with an error; of a send that may have been taken with that."""
        if self.doubtful:
            self.end_unknown(self.doubtful)
            return
        self.close(BUSY if isinstance(error, Busy) else DRAINING if isinstance(error, Draining) else ERROR)
        self.abandon()
        self.caller.reply_error(self.method, self.id, error, self.timed_out)
        if self.cancelled_by:
            self.caller.reply(wire.CANCEL, self.cancelled_by, wire.TRUE)


def client_call(
    caller: Caller,
    id: bytes,
    timed_out: bytes,
    topic: bytes,
    since: float,
    deadline: float,
    value: bytes | None,
    group: bytes | None,
) -> ClientCall:
    """Return a new call. It is no constructor because, compiled, a function costs a tenth of one."""
    call = ClientCall.__new__(ClientCall)
    call.begin(topic, since, value, group)
    call.begin_for(caller, id, timed_out, deadline)
    return call
