"""The calls of a node's own clients, from arrival to answer.

Each runs on its caller's clock, and only here, at the worker that has the caller's
connection, whoever owns the topic: so a caller is answered in time even if the owner hangs,
and its calls can be issued again if the owner dies.

A send that may just be meeting somebody cannot end by our word alone, or its value might be
taken although its sender is told that nobody came. It is *ending* then: its value is asked back
from all who may have it, and their word, or its owner's, decides. That is waited for until its
time is over, and GRACE_S more.
"""

from __future__ import annotations

from typing import Final, Protocol

from skywalker.errors import Busy, Cancelled, Draining, RequestError, TooLarge
from skywalker.journal.record import BUSY, CANCELLED, DRAINING, ERROR, HERE, MET, PROMPT, TIMED_OUT
from skywalker.journal.record import RECV as RECORDED_RECV
from skywalker.journal.record import SEND as RECORDED_SEND
from skywalker.journal.record import TAKE as RECORDED_TAKE
from skywalker.junction import Junction
from skywalker.limits import MAX_FRAME
from skywalker.line import Call, Subscriber
from skywalker.members import Place
from skywalker.wire import junction as wire
from skywalker.wire.junction import RECV, SEND, TAKE, TRUE, reply
from workers.calls.journal import Journal
from workers.calls.node_call import NodeCall
from workers.calls.standing import Standing
from workers.engine.turn import Turn

REPLY_BYTES: Final = 1 + len(RECV)
"""Of the reply with a value, besides that and the id: :take! is as long as :recv!."""

GRACE_S: Final = 0.03
"""Seconds for the owner's last word; with a bucket of deadlines it keeps within the promised 50 ms."""

TIME_IS_UP: Final = b""
"""What a call ends with, where it is not the id of the :cancel that asked for it."""


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
        """Take a call back from where it waits. Returns False if it may just be meeting somebody."""
        raise NotImplementedError


class Question(Protocol):
    """A question about a topic that another worker owns."""

    carrier: Carrier | None
    number: bytes

    def answer(self, info: bytes) -> None:
        """This is what the owner counted."""

    def end(self) -> None:
        """The owner will not answer."""


class Interest(Protocol):
    """That of all who subscribe to one topic here, or through here, in its values, as interests.py keeps it up."""

    topic: bytes
    audience: int
    """How many they are."""

    def subscribers(self) -> list[Subscriber]:
        """Return those whose subscription is in effect."""

    def answered(self, by: Carrier) -> None:
        """What was asked longest ago is in effect where the topic is owned."""

    def lost(self, by: Carrier) -> None:
        """The carrier is gone, or another has its place."""

    def cut_off(self) -> None:
        """Values were lost on their way here."""


class Caller:
    """Who calls are answered to: one connection, as its calls see it; session.py and pubsub.py have what it does."""

    __slots__ = (
        "connection",
        "counters",
        "door",
        "gone",
        "journal",
        "junction",
        "knows_errors",
        "max_reply",
        "routing",
        "standing",
        "turn",
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
        """Keep track of a call, and have its clock run."""
        raise NotImplementedError

    def release(self, call: ClientCall) -> None:
        """Forget a call that is answered, if it was kept at all."""
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
        self.route = HERE  # or whether that is a sibling's or another node's

    def congested(self) -> bool:
        """Return whether the owner is so far behind that it is asked nothing new."""
        raise NotImplementedError

    def forward(self, call: ClientCall) -> None:
        """Have a call meet somebody, or wait, at the owner."""
        raise NotImplementedError

    def ask_back(self, call: ClientCall) -> None:
        """Ask the owner to let a call go that has met nobody; its word decides, and then the call has left()."""
        raise NotImplementedError

    def withdraw(self, call: ClientCall) -> None:
        """Take a call back, whatever the owner may say of it from now on."""
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
        "caller", "carrier", "chunk", "deadline", "ending", "given_bytes", "held", "id", "number", "route",
        "timed_out", "waited",
    )  # fmt: skip

    def begin_for(self, caller: Caller, id: bytes, timed_out: bytes, deadline: float) -> None:
        """Set up what a call has besides begin(). It ends at `deadline` with the result `timed_out`, in its dialect."""
        self.caller = caller
        self.id = id
        self.timed_out = timed_out
        self.deadline = deadline  # or the end of the time for its owner's last word
        self.held = False  # whether its caller keeps track of it and its clock runs
        self.waited = False  # whether it was, at any time
        self.carrier: Carrier | None = None  # where it waits, if at another worker, with its number there
        self.number = b""
        self.route = HERE  # unless it went to another worker
        self.ending: bytes | None = None  # set once it is to end without having met anybody, and why
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

    def begin_waiting(self) -> None:
        """Keep track of a call that has to wait. Raises Busy if a new one has no room."""
        if not self.held:
            self.caller.admit(self.cost())
            self.hold()

    def hold(self) -> None:
        """Keep track of it from now on, if not yet, unless its caller is gone."""
        if not self.held and not self.answered and not self.caller.gone:
            self.caller.keep(self)

    def cost(self) -> int:
        return NodeCall.cost(self) + len(self.timed_out)

    def note(self, outcome: int) -> None:
        """Say what became of it: an outcome of record.py."""
        if self.value is not None:
            self.record(RECORDED_SEND, outcome, len(self.value))
        else:
            self.record(RECORDED_RECV if self.group is None else RECORDED_TAKE, outcome, self.given_bytes)

    def record(self, method: int, outcome: int, size: int) -> None:
        """Count it, and have the journal, if there is one, say so of a call with a value of so many bytes."""
        caller = self.caller
        caller.counters.answered(self.topic, method, outcome, self.route, caller.turn.now - self.since)
        journal = caller.journal
        if journal is not None:
            codes = method | outcome << 8 | self.route << 16 | caller.door << 24
            journal.add(self.topic, self.since, size, caller.connection, codes)

    # Meeting.

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
        if len(send.value) + len(self.id) + REPLY_BYTES > caller.max_reply:
            caller.release(self)
            caller.turn.later.append(self)
            return True
        self.chunk = reply(self.method, self.id, send.value)
        self.given_bytes = len(send.value)
        send.given_here(self)
        caller.release(self)
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

    def taken_back(self) -> None:
        """The value that it was given is another's again: listen on."""
        self.listen_again()

    def listen_again(self) -> None:
        """Go on listening after a value that it couldn't get, if its time is not over."""
        if not self.caller.gone:
            self.hold()
            self.caller.routing.issue(self)

    def _wait_for_room(self) -> None:
        try:
            self.begin_waiting()
        except Busy as error:
            self.fail(error)
        else:
            self.caller.park(self)

    def delivered(self) -> None:
        """Its client has the value that it was given."""
        self.note(MET if self.waited else PROMPT)

    def met(self) -> None:
        self.caller.release(self)
        self.note(MET if self.waited else PROMPT)
        self.value = b""
        self.caller.reply(SEND, self.id, TRUE)
        if self.ending:
            self.caller.reply(wire.CANCEL, self.ending, wire.FALSE)

    def missed(self) -> None:
        if self.caller.gone:
            self.abandon()
        elif self.ending is not None:
            self.over()
        elif self.too_long:
            self.refuse(self.too_long)
        else:
            self.given_to = None  # nobody has the value any more
            self.hold()
            self.caller.routing.resume(self)

    # Unsubscribing.

    def expired(self) -> None:
        """Its time, or the time for a last word of its owner, is over."""
        if not self.held:
            return
        if self.value is not None and self.ending is None:
            self.end(TIME_IS_UP)
            return
        if self.ending is not None:
            self._hear_last_words()
        if self.held:
            # A value on its way here from another worker finds the listener gone, and goes to somebody else.
            self.withdraw()
            self.over()

    def _hear_last_words(self) -> None:
        # It may be us who had no processor in the meantime, and times run out before anything is read.
        if self.carrier is not None:
            self.carrier.catch_up()
        for listener in [*(self.given_to or ())]:
            listener.catch_up()

    def end(self, ending: bytes) -> None:
        """End without having met anybody, TIME_IS_UP or for a :cancel, unless it just met somebody.

        A :cancel does not hurry: what really became of the call is waited for as long as it has time.
        """
        self.ending = ending
        carrier = self.carrier
        turn = self.caller.turn
        grace = GRACE_S
        if carrier is not None and (self.value is not None or ending == TIME_IS_UP):
            grace = carrier.grace_s
            carrier.ask_back(self)
        elif self.withdraw():
            self.over()
            return
        elif ending == TIME_IS_UP:
            # Times run out as a turn begins: who was given the value here has it, or is choked and must not get it.
            self.ask_back(False)
        else:
            turn.acks.append(self)  # a :cancel comes in the middle of a turn
        self.caller.postpone(self, max(0.0, self.deadline - turn.now) + grace)

    def acknowledge(self) -> None:
        """The turn in which it was cancelled is written: who was given the value in that has it, or must not get it."""
        if not self.answered:
            self.ask_back(False)

    def withdraw(self) -> bool:
        """Leave the place where it waits. Returns False if it may just be meeting somebody."""
        return self.caller.routing.withdraw(self)

    def left(self) -> None:
        """It has left the place where it waited, and met nobody there: end if that was why, else go on elsewhere."""
        if self.ending is not None:
            self.over()
        elif self.caller.standing.leaving:
            self.fail(Draining("this worker is going away"))
        else:
            self.caller.routing.issue(self)

    def refuse(self, limit: int) -> None:
        """Answer a send whose value is too long for who listens: they could take so many bytes."""
        if self.ending is not None:
            self.over()
            return
        size = 0 if self.value is None else len(self.value)
        details = {"size": size, "limit": limit}
        self.fail(TooLarge(f"value of {size} bytes, whoever listens takes {limit} at most", details))

    def over(self) -> None:
        """It met nobody and never will: answer with what it ends with."""
        self.caller.release(self)
        self.note(CANCELLED if self.ending else TIMED_OUT)
        self.abandon()
        if self.ending:
            self.caller.reply_error(self.method, self.id, Cancelled("the call was cancelled by its client"))
            self.caller.reply(wire.CANCEL, self.ending, wire.TRUE)
        else:
            self.caller.reply(self.method, self.id, self.timed_out)

    def fail(self, error: RequestError) -> None:
        """Answer with an error."""
        self.caller.release(self)
        self.note(BUSY if isinstance(error, Busy) else DRAINING if isinstance(error, Draining) else ERROR)
        self.abandon()
        self.caller.reply_error(self.method, self.id, error, self.timed_out)
        if self.ending:
            self.caller.reply(wire.CANCEL, self.ending, wire.TRUE)


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
