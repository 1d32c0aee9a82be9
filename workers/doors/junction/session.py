"""One client of the MessagePack dialect: its calls that wait, and the replies to it, in any order.

What it says, and what is done about that, dialogue.py and methods.py have.
"""

from __future__ import annotations

from typing import Final, Protocol

from skywalker import errors
from skywalker.access.proof import Response
from skywalker.address import Address
from skywalker.journal import record
from skywalker.limits import MAX_FRAME
from skywalker.wire import junction as wire
from skywalker.wire.junction import MESSAGE, RECV, SEND, TIMED_OUT, TOKENS, WILL, reply
from workers.access.admission import Impostor, speaks_tls
from workers.calls.call import ClientCall, NodeCall
from workers.calls.doubt import LOST_LISTENER
from workers.calls.will import Will
from workers.doors.commons import Commons
from workers.doors.connection import Connection
from workers.doors.subscription import Delivery, Subscription, Subscriptions, Unsubscribing
from workers.engine.loop import Alarm
from workers.engine.sockets import end_unacknowledged
from workers.engine.transport import Transport
from workers.stats.close_reasons import GOODBYE, Close
from workers.stats.log import MAX_NAME

PUBLISHED: Final = (SEND, RECV, TOKENS)
"""The methods of the published dialects, whose clients take an error for a value."""

KNOWN: Final = (errors.BadArity, errors.BadTimeout, errors.Cancelled)
"""Errors that such a client may hear: of calls that the server of these dialects, too, answered with a mistake, and of
one that its client has cancelled, as none of them can."""


class Noted(Protocol):
    """Who is refused something, as far as the log has it."""

    peer: str

    @property
    def commons(self) -> Commons: ...


class Waiting:
    """The calls of one connection that wait, by the id that its client gave each; the same may be given twice."""

    __slots__ = ("_by_id", "_twins", "count")

    def __init__(self) -> None:
        self.count = 0
        self._by_id: dict[bytes, ClientCall] = {}
        self._twins: dict[bytes, dict[ClientCall, None]] = {}  # those whose id another one had

    def add(self, call: ClientCall) -> None:
        """Keep a call."""
        # Behind the twins that are left of one that is gone: the latest is found first.
        if call.id in self._twins or self._by_id.setdefault(call.id, call) is not call:
            self._twins.setdefault(call.id, {})[call] = None
        self.count += 1

    def remove(self, call: ClientCall) -> None:
        """Forget one that is here."""
        if self._by_id.get(call.id) is call:
            del self._by_id[call.id]
        else:
            twins = self._twins[call.id]
            del twins[call]
            if not twins:
                del self._twins[call.id]
        self.count -= 1

    def find(self, id: bytes) -> ClientCall | None:
        """Return a call of this id, the latest of several."""
        if id in self._twins:
            return next(reversed(self._twins[id]))
        return self._by_id.get(id)

    def all(self) -> list[ClientCall]:
        """Return them all."""
        return [*self._by_id.values(), *(call for twins in self._twins.values() for call in twins)]


class Unacked:
    """The values that one client was given and has not acknowledged, by the id of the call that each answered."""

    __slots__ = ("_by_id", "count", "size")

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self._by_id: dict[bytes, ClientCall] = {}

    def add(self, listener: ClientCall) -> None:
        """Keep what a listener was given. None of its id may be here."""
        self._by_id[listener.id] = listener
        self.count += 1
        self.size += len(listener.chunk)

    def has(self, listener: ClientCall) -> bool:
        """Return whether this listener's value is one of them."""
        return self._by_id.get(listener.id) is listener

    def pop(self, id: bytes) -> ClientCall | None:
        """Forget the one of this id, and return it."""
        listener = self._by_id.pop(id, None)
        if listener is not None:
            self.count -= 1
            self.size -= len(listener.chunk)
        return listener

    def clear(self) -> list[ClientCall]:
        """Forget them all, and return them."""
        listeners = [*self._by_id.values()]
        self._by_id.clear()
        self.count = self.size = 0
        return listeners


class Silence:
    """Whether a client that knows :ping and says nothing still lives: it is asked, and closed without an answer."""

    __slots__ = ("_alarm", "_connection", "_period")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._period = connection.commons.limits.idle_probe_s
        self._alarm = Alarm()
        self._alarm.set(connection.turn, connection.turn.now + self._period, self._probe)

    def end(self) -> None:
        """Look no more."""
        self._alarm.off(self._connection.turn)

    def _probe(self) -> None:
        connection, period = self._connection, self._period
        now, heard_at = connection.turn.now, connection.heard_at
        silence = now - heard_at
        if silence < period:
            next_at = heard_at + period
        elif all(isinstance(call, Will) for call in connection.waiting()):  # it waits for nothing by these
            next_at = now + period
        elif silence < 2 * period:
            connection.push(wire.frame(wire.PING, wire.NIL))
            next_at = heard_at + 2 * period
        else:
            connection.commons.log.info("connection-closed", peer=connection.peer, reason="it does not answer a ping")
            connection.counters.limited("idle_probe_s")
            connection.close(Close.SILENT, "it does not answer a ping")
            return
        self._alarm.set(connection.turn, next_at, self._probe)


class Session(Connection):
    """A client's connection and the calls that wait on it."""

    __slots__ = (
        "_max_calls", "_silence", "_subscriptions", "_unacked", "_waiting", "follows_ring", "has_called", "name",
        "response", "too_fast", "unreadable",
    )  # fmt: skip

    knows_tokens = True
    tls_wanted = wire.error_frame(wire.ERROR, wire.NIL, speaks_tls())

    def __init__(self, sock: Transport, peer: str, commons: Commons) -> None:
        Connection.__init__(self, sock, peer, commons)
        self.door = record.JUNCTION
        self.knows_errors = False  # before its first :hello: in the published dialects there is no word for an error
        self.max_reply = commons.limits.max_plain_reply
        self.name = ""
        self.has_called = False
        self.follows_ring = False
        self.response: Response | None = None  # to the challenge of another node
        self.unreadable = 0
        self.too_fast = 0  # calls in a row that were refused for being so
        self._max_calls = commons.limits.max_calls
        self._waiting = Waiting()
        self._unacked = Unacked()
        self._subscriptions: Subscriptions | None = None
        self._silence: Silence | None = None  # set once the client has greeted, for only then it knows :ping

    def half_is_old(self, seconds: float) -> None:
        error = errors.BadFrame(f"the rest of a frame did not come within {seconds:g} s")
        self.turn_away(error, Close.HALF_FRAME, "half a frame")

    # Output.

    def reply(self, method: bytes, id: bytes, result: bytes) -> None:
        if self.gone:
            return
        try:
            self.push(reply(method, id, result))
        except errors.TooLarge as error:
            self.reply_error(method, id, error)

    def reply_error(self, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes = TIMED_OUT) -> None:
        if not self.gone:
            self.push(self.refusal(method, id, error, timed_out))

    def refusal(self, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes = TIMED_OUT) -> bytes:
        """Return the reply that says why a call is refused, and count it.

        A client that may take an error for a value is told nothing of a worker that goes away: it is closed instead,
        see depart(). Of what the server of the published dialects never refused it is told that its time is over.
        """
        if (
            not self.knows_errors and isinstance(error, errors.Draining) and method != WILL
        ):  # who leaves a will knows errors
            return b""
        self.counters.refused(error)
        is_heard = self.knows_errors or may_hear(method, error)
        note(self, method, error, is_heard)
        return wire.error_frame(method, id, error) if is_heard else reply(method, id, timed_out)

    def delivered(self, listener: ClientCall) -> None:
        if isinstance(listener, Delivery):
            Connection.delivered(self, listener)  # its client may have many under one id
        elif self.acks:
            send = listener.sender()
            send.hold()
            send.remember(listener)  # whoever asks the value back is to hear that it is out
            # An id that is used twice at a time can be acknowledged but once: the older one gives way.
            self.acknowledged(listener.id)
            if listener.cancelled_by:
                self._lost([listener])
            else:
                self._unacked.add(listener)
                send.awaits_ack(True)
        else:
            Connection.delivered(self, listener)

    def take_back(self, listener: ClientCall, told: bool) -> bool:
        return not self._unacked.has(listener) and Connection.take_back(self, listener, told)

    def congested(self) -> bool:
        if Connection.congested(self):
            return True
        # A value that is not acknowledged is as good as one that is not written.
        return self.acks and (
            self._unacked.count + len(self._values) >= self._max_calls
            or self._unacked.size + self._out_bytes >= self._max_out_bytes
        )

    # The calls that wait here.

    def keep(self, call: ClientCall) -> None:
        self._waiting.add(call)
        if self.account is not None:
            self.account.in_flight += 1
        self._ledger.add_call(call.kind(), call.cost())
        self.turn.deadlines.add(call, call.deadline)

    def release(self, call: ClientCall) -> None:
        self._waiting.remove(call)
        if self.account is not None:
            self.account.in_flight -= 1
        self._ledger.remove_call(call.kind(), call.cost())
        self.turn.deadlines.discard(call, call.deadline)

    def postpone(self, call: ClientCall, seconds: float) -> None:
        self.turn.deadlines.discard(call, call.deadline)
        call.deadline = self.turn.now + seconds
        self.turn.deadlines.add(call, call.deadline)

    def admit(self, cost: int) -> None:
        limit = self._max_calls
        if self._waiting.count + self._unacked.count >= limit:
            raise errors.Busy(f"{limit} calls wait on this connection", {"limit": "max_calls", "value": limit})
        if self.account is not None:
            self.account.admit()
        self._ledger.admit(cost)

    def waiting(self) -> list[ClientCall]:
        return self._waiting.all()

    def fail_all(self, error: errors.RequestError) -> None:
        """Answer every waiting call with `error`, once those that wait for their turn have had it."""
        while self._todo and not self.gone:
            self.obey(self.take_up())
        for call in self.waiting():
            call.leave(error)

    def leave(self) -> None:
        for call in self.waiting():
            if call.carrier is not None:
                call.carrier.ask_back(call)

    def is_owed(self) -> bool:
        # What waits for its turn may acknowledge something.
        return bool(self._unacked.count or self._todo) or any(call.carrier is not None for call in self.waiting())

    @property
    def is_plain(self) -> bool:
        """Whether it has called something, and never said :hello: a client of the published dialects does so."""
        return self.has_called and not self.knows_errors

    def learns_errors(self) -> None:
        """It says :hello."""
        self.knows_errors = True
        self.max_reply = MAX_FRAME

    def worker_drains(self) -> None:
        self.turn.acks.append(self)

    def acknowledge(self) -> None:
        # Whoever met somebody in this turn has been told: until then a send may look as if nothing of it waited.
        self.depart()

    def depart(self) -> None:
        """Close a plain one, whose worker drains, if nothing that it asked waits; else that follows its last answer.

        What it calls from then on is not done: it makes those calls again, over its next connection.
        """
        awaits = self._waiting.count or self._todo or self.subscriptions or self._values or self._unwritten is not None
        if self.is_plain and self.response is None and not awaits and not self.gone:
            self.finish(b"", *GOODBYE)

    def _roomy(self) -> None:
        Connection._roomy(self)
        if self.standing.draining:
            self.turn.acks.append(self)

    def turn_away(self, error: errors.RequestError, reason: Close, text: str) -> None:
        self.counters.refused(error)
        self.last_words(b"" if self.is_plain else wire.error_frame(wire.ERROR, wire.NIL, error), reason, text)

    def forget(self) -> list[ClientCall]:
        self._todo = []
        for call in self.waiting():
            call.withdraw()
            call.close(record.GONE)
            call.abandon()
            if isinstance(call, Will):
                publication = call.publication()
                self.commons.orphans.adopt(publication)
                if self.routing.publish(publication):
                    publication.met()
        self.watch_no_more()
        if self._silence is not None:
            self._silence.end()
        self._silence = None  # it refers to this session: together they would stay until the collector comes by
        if self._subscriptions is not None:
            self._subscriptions.end_all()
        unacked = self._unacked.clear()
        for listener in unacked:
            listener.sender().doubt(LOST_LISTENER)
        return unacked

    # Subscriptions.

    @property
    def subscriptions(self) -> int:
        return 0 if self._subscriptions is None else len(self._subscriptions)

    @property
    def in_flight(self) -> int:
        return self._waiting.count + self.subscriptions

    def subscribe(self, id: bytes, topic: bytes) -> None:
        """Have values of a topic pushed under this id. Raises BadId if one of that id is on, Busy for too many."""
        if self._subscriptions is None:
            self._subscriptions = Subscriptions(self.commons)
        if self._subscriptions.get(id) is not None:
            raise errors.BadId("this connection has a subscription of that id")
        self._subscriptions.add(self, id, topic, False).ask()

    def unsubscribe(self, id: bytes, subscription_id: bytes) -> None:
        """Have no more of them pushed."""
        subscription = None if self._subscriptions is None else self._subscriptions.remove(subscription_id)
        if subscription is None:
            self.reply(wire.UNSUBSCRIBE, id, wire.FALSE)
        else:
            Unsubscribing(self, id, subscription).ask()

    def subscribed(self, subscription: Subscription) -> None:
        self.reply(wire.SUBSCRIBE, subscription.key, wire.TRUE)

    def unsubscribed(self, by: Unsubscribing) -> None:
        self.reply(wire.UNSUBSCRIBE, by.key, wire.TRUE)

    def tell(self, subscription: Subscription, send: NodeCall) -> None:
        # In two pieces, of which the second is everybody's and the first that of the message before: nothing is made.
        own = subscription  # compiled, of this very class
        value = send.value
        assert value is not None, "it is a send"
        size = len(value)
        if size != own.size or not own.head:
            whole = self.worded(own, send)
            if not whole:
                return
            own.head, own.size = whole[:-size], size
        self.push(own.head)
        self.push_message(value)

    def worded(self, subscription: Subscription, send: NodeCall) -> bytes:
        own = subscription  # compiled, of this very class
        assert send.value is not None, "it is a send"
        try:
            return reply(MESSAGE, own.key, send.value)
        except errors.TooLarge as error:
            self.reply_error(MESSAGE, own.key, error)
            return b""

    def published(self, call: ClientCall) -> None:
        self.commons.orphans.settled(call)  # it was our will

    # What a method may ask of its session.

    def find(self, call_id: bytes) -> ClientCall | None:
        """Return a call that waits under this id, the latest of several."""
        return self._waiting.find(call_id)

    def acknowledged(self, call_id: bytes) -> None:
        """The client has the value that it was given for this call."""
        listener = self._unacked.pop(call_id)
        if listener is not None:
            Connection.delivered(self, listener)
            if not self.gone:  # or it has its last words written, and whoever writes them looks on
                self._roomy()

    def given_back(self, call_id: bytes) -> None:
        """The client does not want the value it was given for this call, if it has not acknowledged it."""
        listener = self._unacked.pop(call_id)
        if listener is not None:
            listener.sender().awaits_ack(False)
            self._lost([listener])
            self._roomy()
        elif self.acks:
            for listener in self.unwritten():
                if listener.id == call_id and not isinstance(listener, Delivery):
                    listener.cancelled_by = call_id  # it gives the value back once it has it

    def ring_changed(self) -> None:
        if self.follows_ring and not self.gone:
            self.push(wire.frame(wire.RING, wire.NIL, self.commons.node.packed_ring(self.standing.node_drains)))

    def reached(self) -> Address | None:
        """Return to which address of this machine it was made, None by a Unix socket."""
        name = self._socket.getsockname()
        return Address(*name[:2]) if isinstance(name, tuple) else None

    def is_idle(self) -> bool:
        """Whether no call is under way, and nothing is half read or half written."""
        return not (
            self._waiting.count
            or self._unacked.count
            or self._tail
            or self._todo
            or self._unwritten
            or self._values
            or self._subscriptions is not None
        )

    def greeted(self, name: str, acks: bool, follows_ring: bool) -> None:
        """The client said who it is, and what it wants. It knows :ping, so it can be probed."""
        if name != self.name:
            self.name = name
            self.peer = f"{self.peer.split()[0]} ({name[:MAX_NAME]})"
        if acks and not self.acks and self.reached() is not None:
            # A value that its client never gets, since its machine is gone, is another's as soon as one that is unread.
            end_unacknowledged(self._socket, self.commons.limits.unread_output_s)
        self.acks = acks
        self.follows_ring = follows_ring
        if self.standing.node_drains:
            self.ring_changed()
        if self._silence is None:
            self._silence = Silence(self)


def may_hear(method: bytes, error: errors.RequestError) -> bool:
    """Whether even a client that knows no errors is told of this one: of calls that only others make it is."""
    return method not in PUBLISHED or isinstance(error, KNOWN)


def is_beyond_time(method: bytes, error: errors.RequestError) -> bool:
    """Whether it would be no answer that the time is over: there is none, or nobody can tell whose."""
    return method == TOKENS or isinstance(error, errors.BadFrame | errors.BadId)


def note(connection: Noted, method: bytes, error: errors.RequestError, is_heard: bool) -> None:
    """Tell of a refusal in the log: that of a right, and any that its client does not hear.

    That of a greeting which says nothing is none: some only see whether we live.
    """
    is_about_rights = isinstance(error, errors.Unauthorized | errors.Forbidden)
    if not is_heard or (is_about_rights and (isinstance(error, Impostor | errors.Forbidden) or method != wire.HELLO)):
        connection.commons.admission.refusals.note(connection.peer, error)
