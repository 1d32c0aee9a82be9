"""One client of the MessagePack dialect: its calls in, its replies out, in any order.

Calls take effect in the order they came. A bad one is answered with an error and costs its
sender nothing else, unless nothing readable comes at all.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from skywalker import errors
from skywalker.limits import MAX_ID, MAX_UNREADABLE
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split
from workers.alarm import Alarm
from workers.calls import ClientCall, ClientListener, ClientSend
from workers.connection import Connection

if TYPE_CHECKING:
    from workers.router import Router

Arguments = tuple[bytes, ...]

MAX_ECHOED_METHOD: Final = 64
"""Bytes of an unknown method that its error reply repeats."""

# Few different timeouts are in use at a time, and each is decoded again and again.
_seconds: Final = functools.lru_cache(maxsize=4096)(values.timeout_seconds)


class Session(Connection):
    """A client's connection and the calls that wait on it."""

    __slots__ = (
        "_acks", "_calls", "_half_frame", "_heard_at", "_in_flight", "_probe", "_tail", "_twins", "_unacked",
        "_unreadable", "name",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, peer: str, router: Router) -> None:
        super().__init__(sock, peer, router)
        self.name = ""
        self._acks = False
        self._tail = b""  # the beginning of a frame
        self._unreadable = 0
        self._in_flight = 0
        self._calls: dict[bytes, ClientCall] = {}  # those that wait, by id
        self._twins: dict[bytes, dict[ClientCall, None]] = {}  # those whose id another one had
        self._unacked: dict[bytes, ClientListener] = {}  # by id, those whose value waits for its :ack
        self._heard_at = 0.0
        self._half_frame: Alarm | None = None
        self._probe: Alarm | None = None  # set once the client has greeted, for only then it knows :ping

    # Input.

    def received(self, data: bytes) -> None:
        self._heard_at = self.router.now
        had_tail = self._tail
        frames, self._tail = split(had_tail + data if had_tail else data)
        for frame in frames:
            handle = _METHODS.get(frame[0])
            try:
                if handle is None:
                    handle = _unusual(frame)
                handle(self, frame)  # type: ignore[arg-type]  # a BadFrame, which is none, has raised
            except errors.RequestError as error:
                self._refuse(frame, error)
            if self.closed or self._closing:
                return
        if self._tail or had_tail:
            self._watch_tail(fresh=bool(frames))

    def _watch_tail(self, *, fresh: bool) -> None:
        """See that a frame that has begun goes on; `fresh` says that an earlier one was completed."""
        alarm = self._half_frame
        if alarm is None:
            alarm = self._half_frame = Alarm(self._half_frame_is_old)
        if not self._tail:
            alarm.off(self.router)
        elif fresh or alarm.at is None:
            alarm.set(self.router, self.router.now + self.router.limits.half_frame_s)

    def _half_frame_is_old(self) -> None:
        error = errors.BadFrame(f"the rest of a frame did not come within {self.router.limits.half_frame_s:g} s")
        self.last_words(wire.error_frame(wire.ERROR, wire.NIL, error), "half a frame")

    def _refuse(self, frame: Arguments | BadFrame, error: errors.RequestError) -> None:
        if isinstance(frame, BadFrame):
            method, id = frame.method, frame.id
        else:
            method, id = (*frame, b"", b"")[:2]
        known = _canonical_method(method)
        if known is None:
            known = method if 0 < len(method) <= MAX_ECHOED_METHOD and method[0] & 0xE0 == 0xA0 else wire.ERROR
        reply = wire.error_frame(known, id if 0 < len(id) <= MAX_ID else wire.NIL, error)
        if isinstance(error, errors.BadFrame):
            self._unreadable += 1
            if self._unreadable == MAX_UNREADABLE:
                self.last_words(reply, f"{MAX_UNREADABLE} unreadable frames")
                return
        self.push(reply)

    # Output.

    def reply(self, method: bytes, id: bytes, result: bytes) -> None:
        """Answer the call `id`."""
        if self.closed:
            return
        try:
            self.push(wire.reply(method, id, result))
        except errors.TooLarge as error:
            self.reply_error(method, id, error)

    def reply_error(self, method: bytes, id: bytes, error: errors.RequestError) -> None:
        """Answer the call `id` with an error."""
        if not self.closed:
            self.push(wire.error_frame(method, id, error))

    def delivered(self, listener: ClientListener) -> None:
        if self._acks and listener.offered is not None and not listener.offered.abandoned:
            listener.offered.hold()
            # An id that is used twice at a time can be acknowledged but once: the older one gives way.
            older = self._unacked.pop(listener.id, None)
            self._unacked[listener.id] = listener
            if older is not None:
                super().delivered(older)
        else:
            super().delivered(listener)

    # The calls that wait here.

    def keep(self, call: ClientCall) -> None:
        """Keep track of a call, and have its clock run."""
        call.held = True
        if self._calls.setdefault(call.id, call) is not call:
            self._twins.setdefault(call.id, {})[call] = None
        self._in_flight += 1
        self.router.kept(call)

    def release(self, call: ClientCall) -> None:
        """Forget a call that is answered, if it was kept at all."""
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
        self.router.released(call)

    def postpone(self, call: ClientCall, due: float) -> None:
        """Look at a call at another time than its deadline."""
        if call.held:
            self.router.deadlines.discard(call, call.due)
            call.due = due
            self.router.deadlines.add(call, due)

    def admit(self) -> None:
        """Raise Busy if no more calls may wait on this connection."""
        limit = self.router.limits.max_calls
        if self._in_flight + len(self._unacked) >= limit:
            raise errors.Busy(f"{limit} calls wait on this connection", {"limit": "max_calls", "value": limit})

    def _waiting(self) -> list[ClientCall]:
        return [*self._calls.values(), *(call for twins in self._twins.values() for call in twins)]

    def fail_all(self, error: errors.RequestError) -> None:
        """Answer every waiting call with `error`."""
        for call in self._waiting():
            call.withdraw()
            call.fail(error)

    def forget(self) -> list[ClientListener]:
        for call in self._waiting():
            call.withdraw()
            call.abandon()
            self.release(call)
        for alarm in (self._half_frame, self._probe):
            if alarm is not None:
                alarm.off(self.router)
        unacked = [*self._unacked.values()]
        self._unacked.clear()
        return unacked

    # The methods. Each takes the whole frame, whose element zero is its own name.

    def send(self, frame: Arguments) -> None:
        """`[":send!", id, timeout, topic, value]`, or with a timeout value before the topic."""
        if len(frame) == 5:
            _, id, timeout, topic, value = frame
            timed_out = wire.TIMED_OUT
        elif len(frame) == 6:
            _, id, timeout, timed_out, topic, value = frame
        else:
            raise _bad_arity(frame, "3 or 4")
        router = self.router
        deadline = router.now + self._check(id, timeout)
        topic = values.topic_bytes(topic)
        router.issue(ClientSend(self, id, timed_out, topic, value, router.now, deadline))

    def recv(self, frame: Arguments) -> None:
        """`[":recv!", id, timeout, topic]`, or with a timeout value before the topic."""
        if len(frame) == 4:
            _, id, timeout, topic = frame
            timed_out = wire.TIMED_OUT
        elif len(frame) == 5:
            _, id, timeout, timed_out, topic = frame
        else:
            raise _bad_arity(frame, "2 or 3")
        self._listen(wire.RECV, id, timeout, timed_out, topic, None)

    def take(self, frame: Arguments) -> None:
        """`[":take!", id, timeout, topic, group]`."""
        _, id, timeout, topic, group = _arguments(frame, 5)
        self._listen(wire.TAKE, id, timeout, wire.TIMED_OUT, topic, values.topic_bytes(group))

    def _listen(
        self, method: bytes, id: bytes, timeout: bytes, timed_out: bytes, topic: bytes, group: bytes | None
    ) -> None:
        router = self.router
        deadline = router.now + self._check(id, timeout)
        topic = values.topic_bytes(topic)
        router.issue(ClientListener(self, method, id, timed_out, topic, group, router.now, deadline))

    def _check(self, id: bytes, timeout: bytes) -> float:
        """Return the seconds that the call may wait. Raises what forbids it."""
        if len(id) > MAX_ID:
            raise _bad_id(id)
        if self.router.draining:
            raise errors.Draining("this node is going away")
        return _seconds(timeout)

    def cancel(self, frame: Arguments) -> None:
        """`[":cancel", id, call-id]`: true if that call still waited, which is then answered `cancelled`."""
        _, id, call_id = _arguments(frame, 3)
        call = self._calls.get(call_id)
        if call is None and call_id in self._twins:
            call = next(reversed(self._twins[call_id]))
        if call is None or call.ending is not None:
            self.reply(wire.CANCEL, id, wire.FALSE)
        else:
            call.end(id)

    def ack(self, frame: Arguments) -> None:
        """`[":ack", call-id]`: the client has the value. Nothing is answered."""
        if len(frame) != 2:
            raise _bad_arity(frame, "1")
        listener = self._unacked.pop(frame[1], None)
        if listener is not None:
            super().delivered(listener)

    def tokens(self, frame: Arguments) -> None:
        """`[":tokens", id]`: the sorted tokens of this node."""
        _, id = _arguments(frame, 2)
        self.reply(wire.TOKENS, id, self.router.node.packed_tokens)

    def topic(self, frame: Arguments) -> None:
        """`[":topic", id, topic]`: who waits there."""
        _, id, topic = _arguments(frame, 3)
        self.router.census(self, id, values.topic_bytes(topic))

    def ping(self, frame: Arguments) -> None:
        """`[":ping", id]`: true; and `[":ping", id, true]`, the answer to a probe of ours."""
        if len(frame) != 3:
            _, id = _arguments(frame, 2)
            self.reply(wire.PING, id, wire.TRUE)

    def hello(self, frame: Arguments) -> None:
        """`[":hello", id, {options}]`: what this node is, and from then on the options hold."""
        _, id, packed = _arguments(frame, 3)
        options = _options(packed)
        name, acks = options.get("name", self.name), options.get("ack", self._acks)
        if not isinstance(name, str) or not isinstance(acks, bool):
            raise errors.BadFrame("in the options of :hello `name` is a string and `ack` true or false")
        self.name, self._acks = name, acks
        self.reply(wire.HELLO, id, self.router.node.packed_greeting)
        if self._probe is None:
            self._probe = Alarm(self._probe_silence)
            self._probe.set(self.router, self.router.now + self.router.limits.idle_probe_s)

    def _probe_silence(self) -> None:
        """Ask a client that waits for replies, and is silent, whether it lives; close it if it did not say so."""
        router, period = self.router, self.router.limits.idle_probe_s
        silence = router.now - self._heard_at
        if not self._in_flight or silence < period:
            next_at = self._heard_at + period if silence < period else router.now + period
        elif silence < 2 * period:
            self.push(wire.frame(wire.PING, wire.NIL))
            next_at = self._heard_at + 2 * period
        else:
            router.log.info("connection-closed", peer=self.peer, reason="it does not answer a ping")
            self.close("it does not answer a ping")
            return
        if self._probe is not None:
            self._probe.set(router, next_at)


def _arguments(frame: Arguments, count: int) -> Arguments:
    """Return the frame of a method that takes exactly so many elements, with a short enough id."""
    if len(frame) != count:
        raise _bad_arity(frame, str(count - 2))
    if len(frame[1]) > MAX_ID:
        raise _bad_id(frame[1])
    return frame


def _bad_arity(frame: Arguments, wanted: str) -> errors.BadArity:
    method = values.unpack(frame[0])
    return errors.BadArity(f"{method} takes {wanted} arguments after its id, not {max(0, len(frame) - 2)}")


def _bad_id(id: bytes) -> errors.BadId:
    return errors.BadId(f"id of {len(id)} bytes, limit is {MAX_ID}", {"size": len(id), "limit": MAX_ID})


def _options(packed: bytes) -> Mapping[Any, Any]:
    try:
        options = values.unpack(packed)
    except (ValueError, TypeError):
        options = None
    if not isinstance(options, dict):
        raise errors.BadFrame("the options of :hello are a map")
    return options


_METHODS: Final[Mapping[bytes, Callable[[Session, Arguments], None]]] = {
    wire.SEND: Session.send,
    wire.RECV: Session.recv,
    wire.TAKE: Session.take,
    wire.CANCEL: Session.cancel,
    wire.ACK: Session.ack,
    wire.TOKENS: Session.tokens,
    wire.TOPIC: Session.topic,
    wire.PING: Session.ping,
    wire.HELLO: Session.hello,
}


def _canonical_method(method: bytes) -> bytes | None:
    """Return the canonical form of a method that may be encoded at length, None if there is no such method."""
    if not 0 < len(method) <= MAX_ECHOED_METHOD:
        return None
    canonical = values.canonical(method)
    return canonical if canonical in _METHODS else None


def _unusual(frame: Arguments | BadFrame) -> Callable[[Session, Arguments], None]:
    """Return the method of a frame that does not name it in its canonical form. Raises BadFrame or UnknownMethod."""
    if isinstance(frame, BadFrame):
        raise errors.BadFrame(f"this is no MessagePack array: {frame.reason}")
    method = _canonical_method(frame[0])
    if method is None:
        raise errors.UnknownMethod("there is no such method")
    return _METHODS[method]
