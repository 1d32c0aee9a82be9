"""One client of the MessagePack dialect: its calls in, its replies out, in any order.

Calls take effect in the order they came. A bad one is answered with an error and costs its
sender nothing else, unless nothing readable comes at all.
"""

from __future__ import annotations

import socket
import traceback
from typing import TYPE_CHECKING, Any, Final

from skywalker import errors
from skywalker.journal import record
from skywalker.limits import MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire.frames import Frame, split
from skywalker.wire.junction import MESSAGE, RECV, SEND, reply
from workers.alarm import Alarm
from workers.calls import ClientCall
from workers.closes import Close
from workers.connection import Connection
from workers.methods import METHODS, echo, recv, send, unusual
from workers.node_call import NodeCall
from workers.subscription import Delivery, Subscription, Subscriptions, Unsubscribing

if TYPE_CHECKING:
    from workers.router import Router


MAX_LOGGED_NAME: Final = 64
"""Characters of what a client calls itself that go into log lines."""


class Session(Connection):
    """A client's connection and the calls that wait on it."""

    __slots__ = (
        "_calls", "_heard_at", "_in_flight", "_max_calls", "_probe", "_subscriptions", "_twins", "_unacked",
        "_unacked_bytes", "_unreadable", "acks", "follows_ring", "name",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, peer: str, router: Router) -> None:
        Connection.__init__(self, sock, peer, router)
        self.door = record.JUNCTION
        self.name = ""
        self.acks = False
        self.follows_ring = False
        self._unreadable = 0
        self._in_flight = 0
        self._max_calls = router.limits.max_calls
        self._calls: dict[bytes, ClientCall] = {}  # those that wait, by id
        self._twins: dict[bytes, dict[ClientCall, None]] = {}  # those whose id another one had
        self._unacked: dict[bytes, ClientCall] = {}  # by id, those whose value waits for its :ack
        self._unacked_bytes = 0
        self._heard_at = 0.0
        self._subscriptions: Subscriptions | None = None
        self._probe: Alarm | None = None  # set once the client has greeted, for only then it knows :ping

    # Input.

    def received(self, data: bytes) -> None:
        self._heard_at = self.turn.now
        had_tail = self._tail
        frame: Any  # the name of a BadFrame is no method's
        frames, self._tail = split(had_tail + data if had_tail else data)
        for frame in frames:
            name = frame[0]
            try:
                # Nearly all calls are one of these, and compiled it is the quickest to call them by name.
                if name == SEND:
                    send(self, frame)
                elif name == RECV:
                    recv(self, frame)
                else:
                    method = METHODS.get(name) or unusual(frame)
                    method(self, frame)
            except errors.RequestError as error:
                self._refuse(frame, error)
            except Exception:
                # A mistake of ours costs the call that met it, not everybody on this worker.
                self.router.log.error("bug", peer=self.peer, trace=traceback.format_exc())
                self._refuse(frame, errors.Internal("a mistake in the node, see its log"))
            if self.gone:
                return
        if self._tail or had_tail:
            self.watch_tail(fresh=bool(frames))

    def half_is_old(self, seconds: float) -> None:
        error = errors.BadFrame(f"the rest of a frame did not come within {seconds:g} s")
        self.turn_away(error, Close.HALF_FRAME, "half a frame")

    def _refuse(self, frame: Frame, error: errors.RequestError) -> None:
        words = self._error(*echo(frame), error)
        if isinstance(error, errors.BadFrame):
            self._unreadable += 1
            if self._unreadable == MAX_UNREADABLE:
                self.last_words(words, Close.UNREADABLE, f"{MAX_UNREADABLE} unreadable frames")
                return
        self.push(words)

    # Output.

    def reply(self, method: bytes, id: bytes, result: bytes) -> None:
        if self.gone:
            return
        try:
            self.push(reply(method, id, result))
        except errors.TooLarge as error:
            self.reply_error(method, id, error)

    def reply_error(self, method: bytes, id: bytes, error: errors.RequestError) -> None:
        if not self.gone:
            self.push(self._error(method, id, error))

    def _error(self, method: bytes, id: bytes, error: errors.RequestError) -> bytes:
        self.tally.refused(error)
        return wire.error_frame(method, id, error)

    def delivered(self, listener: ClientCall) -> None:
        if isinstance(listener, Delivery):
            Connection.delivered(self, listener)  # its client may have many under one id
        elif self.acks and listener.given is not None and not listener.given.abandoned:
            listener.given.hold()
            # An id that is used twice at a time can be acknowledged but once: the older one gives way.
            self.acknowledged(listener.id)
            self._unacked[listener.id] = listener
            self._unacked_bytes += len(listener.chunk)
        else:
            Connection.delivered(self, listener)

    def congested(self) -> bool:
        if Connection.congested(self):
            return True
        # A value that is not acknowledged is as good as one that is not written.
        return self.acks and (
            len(self._unacked) + len(self._values) >= self._max_calls
            or self._unacked_bytes + self._out_bytes >= self._max_out_bytes
        )

    # The calls that wait here.

    def keep(self, call: ClientCall) -> None:
        call.held = call.waited = True
        if self._calls.setdefault(call.id, call) is not call:
            self._twins.setdefault(call.id, {})[call] = None
        self._in_flight += 1
        router = self.router
        router.kept(call)

    def release(self, call: ClientCall) -> None:
        if not call.held:
            return
        call.held = False
        if self._calls.get(call.id) is call:
            del self._calls[call.id]
        else:
            twins = self._twins[call.id]
            del twins[call]
            if not twins:
                del self._twins[call.id]
        self._in_flight -= 1
        router = self.router
        router.released(call)

    def postpone(self, call: ClientCall, seconds: float) -> None:
        if call.held:
            self.turn.deadlines.discard(call, call.deadline)
            call.deadline = self.turn.now + seconds
            self.turn.deadlines.add(call, call.deadline)

    def admit(self) -> None:
        limit = self._max_calls
        if self._in_flight + len(self._unacked) >= limit:
            raise errors.Busy(f"{limit} calls wait on this connection", {"limit": "max_calls", "value": limit})

    def waiting(self) -> list[ClientCall]:
        return [*self._calls.values(), *(call for twins in self._twins.values() for call in twins)]

    def fail_all(self, error: errors.RequestError) -> None:
        """Answer every waiting call with `error`."""
        for call in self.waiting():
            call.withdraw()
            call.fail(error)

    def leave(self) -> None:
        for call in self.waiting():
            if call.carrier is not None:
                call.carrier.ask_back(call)

    def is_owed(self) -> bool:
        return bool(self._unacked) or any(call.carrier is not None for call in self.waiting())

    def turn_away(self, error: errors.RequestError, reason: Close, text: str) -> None:
        self.last_words(self._error(wire.ERROR, wire.NIL, error), reason, text)

    def forget(self) -> list[ClientCall]:
        for call in self.waiting():
            call.withdraw()
            self.release(call)
            call.note(record.GONE)
            call.abandon()
        self.watch_no_more()
        if self._probe is not None:
            self._probe.off(self.turn)
        self._probe = None  # it refers to this session: together they would stay until the collector comes by
        if self._subscriptions is not None:
            self._subscriptions.end_all()
        unacked = [*self._unacked.values()]
        self._unacked.clear()
        return unacked

    # Subscriptions.

    @property
    def subscriptions(self) -> int:
        return 0 if self._subscriptions is None else len(self._subscriptions)

    def subscribe(self, id: bytes, topic: bytes) -> None:
        """Have values of a topic pushed under this id. Raises BadId if one of that id is on, Busy for too many."""
        if self._subscriptions is None:
            self._subscriptions = Subscriptions(self.router)
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

    # What a method may ask of its session.

    def find(self, call_id: bytes) -> ClientCall | None:
        """Return a call that waits under this id, the latest of several."""
        if call_id in self._twins:
            return next(reversed(self._twins[call_id]))
        return self._calls.get(call_id)

    def acknowledged(self, call_id: bytes) -> None:
        """The client has the value that it was given for this call."""
        listener = self._no_longer_unacked(call_id)
        if listener is not None:
            Connection.delivered(self, listener)
            self._roomy()

    def given_back(self, call_id: bytes) -> None:
        """The client does not want the value it was given for this call, if it has not acknowledged it."""
        listener = self._no_longer_unacked(call_id)
        if listener is not None:
            self._lost([listener])
            self._roomy()

    def _no_longer_unacked(self, call_id: bytes) -> ClientCall | None:
        listener = self._unacked.pop(call_id, None)
        if listener is not None:
            self._unacked_bytes -= len(listener.chunk)
        return listener

    def ring_changed(self) -> None:
        if self.follows_ring and not self.gone:
            self.push(wire.frame(wire.RING, wire.NIL, self.router.node.packed_ring(self.router.node_drains)))

    def is_idle(self) -> bool:
        """Whether no call is under way, and nothing is half read or half written."""
        return not (
            self._in_flight
            or self._unacked
            or self._tail
            or self._backlog
            or self._values
            or self._subscriptions is not None
        )

    def greeted(self, name: str, acks: bool, follows_ring: bool) -> None:
        """The client said who it is, and what it wants. It knows :ping, so it can be probed."""
        if name != self.name:
            self.name = name
            self.peer = f"{self.peer.split()[0]} ({name[:MAX_LOGGED_NAME]})"
        self.acks = acks
        self.follows_ring = follows_ring
        if self.router.node_drains:
            self.ring_changed()
        if self._probe is None:
            self._probe = Alarm(self._probe_silence)
            self._probe.set(self.turn, self.turn.now + self.router.limits.idle_probe_s)

    def _probe_silence(self) -> None:
        """Ask a client that waits for replies, and is silent, whether it lives; close it if it did not say so."""
        router, period = self.router, self.router.limits.idle_probe_s
        now = self.turn.now
        silence = now - self._heard_at
        if not self._in_flight or silence < period:
            next_at = self._heard_at + period if silence < period else now + period
        elif silence < 2 * period:
            self.push(wire.frame(wire.PING, wire.NIL))
            next_at = self._heard_at + 2 * period
        else:
            router.log.info("connection-closed", peer=self.peer, reason="it does not answer a ping")
            self.tally.limited("idle_probe_s")
            self.close(Close.SILENT, "it does not answer a ping")
            return
        if self._probe is not None:
            self._probe.set(self.turn, next_at)
