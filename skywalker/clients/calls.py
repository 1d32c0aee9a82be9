"""The calls of one client over one connection after another: frames out, bytes in, outcomes.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock.
A shell reports what happens to the connection, writes what output() returns, and closes the
connection when `hang_up` says why. Calls outlive connections: each new one gets all that
have not ended, in the order they were begun, with the time that is left.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from skywalker.clients.call import Call
from skywalker.clients.requests import MEETINGS, Kind, elements_of, id_in, renewed
from skywalker.clients.settings import Settings
from skywalker.clients.silence import PROBE_S, Silence
from skywalker.deadlines import Deadlines
from skywalker.errors import Cancelled, Draining, RemoteProtocolError, RequestError, SkywalkerError, Unreachable
from skywalker.wire import values
from skywalker.wire.junction import ACK, CANCEL, PING, TRUE, frame, is_timeout, refusal

HELLO_S: Final = 10.0
"""Seconds that a node has to answer the :hello that opens a connection."""


class Calls:
    """All calls of one client that have not ended, and the state of its connection."""

    def __init__(self, settings: Settings) -> None:
        self.ended: list[Call] = []
        self.connected = False
        self.hang_up = ""  # why the shell must close this connection, once it must
        self.failures = 0  # connections and attempts lost in a row, for the back-off
        self.greeting: dict[Any, Any] | None = None  # what the node said of itself, if it knows :hello
        self._settings = settings
        self._requests = settings.requests()
        self._first_dialect = bool(settings.timeout_value)
        self._address = str(settings.address)
        self._cause = "no connection yet"
        self._calls: dict[int, Call] = {}  # in the order they were begun, whatever happened since
        self._last_id = 0
        self._deadlines: Deadlines[Call] = Deadlines()
        self._out: list[bytes] = []
        self.output_bytes = 0  # of calls that output() is to return: what a shell bounds
        self._tail = b""  # the beginning of a frame
        self._hello: Call | None = None  # ours, that opened the connection, until it is answered
        self._acks = False
        self._leaving: set[int] | None = None  # once the node drains: ids of the calls that it still holds
        self._silence = Silence()

    @property
    def busy(self) -> bool:
        """Whether a call waits for an outcome."""
        return bool(self._calls)

    # The caller's side.

    def begin(self, call: Call, kind: Kind, arguments: tuple[Any, ...], timeout: float, now: float) -> None:
        """Start a call. Raises LocalProtocolError or TooLarge, and then nothing was started."""
        id = self._last_id + 1
        call.start(id, kind, self._requests.encode(id, kind, arguments, timeout), timeout, now)
        self._last_id = id
        if not self._calls:
            self._silence.broken(now)  # it counts from when an answer is owed
        self._calls[id] = call
        self._deadlines.add(call, call.expires)
        if self.connected and self._leaving is None:
            call.sent = True
            self._out.append(call.frame)
            self.output_bytes += len(call.frame)

    def cancel(self, call: Call, canceller: Call, timeout: float, now: float) -> None:
        """End `call` with Cancelled if it still waits. `canceller` ends with whether it did."""
        self.begin(canceller, "cancel", (call.id,), timeout, now)
        if not self.owns(call):
            self._end(canceller, False)
        elif not call.sent:
            self._end_cancelled(call)
            self._end(canceller, True)
        else:
            canceller.target = call
            call.cancelling = True

    def abandon(self, call: Call, now: float) -> None:
        """End `call` because nobody wants its outcome any more."""
        if self.owns(call):
            self._withdraw(call)
            self._end_cancelled(call)

    def owns(self, call: Call) -> bool:
        """Whether `call` was begun here and has not ended."""
        return self._calls.get(call.id) is call

    def close(self, error: SkywalkerError) -> None:
        """End every call with `error`."""
        for call in [*self._calls.values()]:
            self._end(call, error=error)

    # The connection's side.

    def connected_to_node(self, now: float) -> None:
        """A new connection is there: it gets the :hello, if any, and every call that has not ended."""
        self.connected = True
        self._silence.broken(now)
        if self._settings.hello is not None:
            self._hello = Call()
            self.begin(self._hello, "hello", (dict(self._settings.hello),), HELLO_S, now)
        for call in [*self._calls.values()]:
            if call is not self._hello:
                call.sent = True
                if call.kind in MEETINGS:
                    call.frame = renewed(call.frame, max(0.0, call.deadline - now))
                self._out.append(call.frame)

    def disconnected(self, cause: str) -> None:
        """The connection, or an attempt to make one, is lost."""
        self.connected = False
        self.hang_up = ""
        self.failures += 1
        self.greeting = None
        self._cause = cause
        self._tail = b""
        self._out.clear()
        self.output_bytes = 0
        self._acks = False
        self._leaving = None
        if self._hello is not None and not self._hello.ended:
            self._drop(self._hello)
        self._hello = None
        for call in [*self._calls.values()]:
            call.sent = False
            # What was to be cancelled went with the connection, and is not issued again.
            if call.cancelling:
                self._end_cancelled(call)
            elif call.kind == "cancel":
                self._end(call, True)

    def unreachable(self) -> Unreachable:
        """Return the error that says where no node answered, and why the last attempt failed."""
        return Unreachable(f"no node reachable at {self._address}: {self._cause}")

    @property
    def has_output(self) -> bool:
        """Whether output() has anything to return."""
        return bool(self._out)

    def output(self) -> bytes:
        """Return what is to be written, and forget it."""
        out = self._out
        if not out:
            return b""
        data = b"".join(out)
        out.clear()
        self.output_bytes = 0
        return data

    def receive(self, data: bytes, now: float) -> None:
        """Take what the node wrote, however it was cut. Never raises; see `hang_up`."""
        self._silence.broken(now)
        if self._tail:
            data = self._tail + data
        pos, size = 0, len(data)
        while size - pos >= 2 and not self.hang_up:
            end = pos + 2 + (data[pos] << 8 | data[pos + 1])
            if end > size:
                break
            try:
                reply = values.unpack(data[pos + 2 : end])
            except ValueError as error:
                self._undecodable(data[pos:end], error)
            else:
                self._reply(reply, data, pos, end)
            pos = end
        self._tail = data[pos:]

    def _reply(self, reply: Any, data: bytes, pos: int, end: int) -> None:
        if type(reply) is not list or len(reply) != 3:
            self._not_a_reply(reply)
            return
        _, id, result = reply
        # An id of another type may equal one of ours, as true equals 1.
        call = self._calls.get(id) if type(id) is int else None
        if call is None or not call.sent:
            self._not_an_answer(id, result)
            return
        if type(result) is msgpack.ExtType and self._node_said(call, result):
            return
        if self._first_dialect and call.kind in ("send", "recv"):
            result_bytes = elements_of(data[pos:end])[2]
            if self._requests.says_timed_out(result_bytes):
                self._end(call, error=call.timed_out())
                return
        self.failures = 0
        if call.kind == "hello":
            self._greeted(call, result)
        elif call.kind == "cancel":
            result = self._was_cancelled(call, result)
        elif self._acks and (call.kind == "recv" or call.kind == "take"):
            self._out.append(frame(ACK, values.pack(id)))
        self._end(call, result)

    def _node_said(self, call: Call, result: msgpack.ExtType) -> bool:
        """Whether an extension value is the node's own word on the call; then that is its outcome."""
        if is_timeout(result) and (call.kind == "take" or not self._first_dialect):
            self.failures = 0
            self._end(call, error=call.timed_out())
            return True
        error = refusal(result)
        if error is not None:
            self._refused(call, error)
        return error is not None

    def _refused(self, call: Call, error: RequestError) -> None:
        if call is self._hello:
            if not error.retryable:
                # Whatever else was asked on this connection would only be refused the same way.
                self.close(error)
            self.hang_up = str(error)
        elif isinstance(error, Draining):
            self._park(call)
            if self._leaving is None:
                self._leave()
        elif isinstance(error, Cancelled) and self._leaving is not None and not call.cancelling:
            self._park(call)
        else:
            self.failures = 0
            self._end(call, error=error)

    def _leave(self) -> None:
        """Take every call back from a node that drains, to issue it again on the next connection.

        Each is cancelled there first, so that none of them meets somebody twice.
        """
        self._leaving = {id for id, call in self._calls.items() if call.sent}
        for id in self._leaving:
            if self._calls[id].kind in MEETINGS:
                self._out.append(self._cancel_frame(id))
        self._hang_up_when_left()

    def _park(self, call: Call) -> None:
        call.sent = False
        self._left(call)

    def _left(self, call: Call) -> None:
        if self._leaving is not None:
            self._leaving.discard(call.id)
            self._hang_up_when_left()

    def _hang_up_when_left(self) -> None:
        if not self._leaving and not self.hang_up:
            self.hang_up = "the node drains"

    def _was_cancelled(self, canceller: Call, answer: Any) -> bool:
        """Whether the call that `canceller` is about waited until then; the node may have been asked twice."""
        target = canceller.target
        if answer is True or target is None:
            return answer is True
        target.cancelling = False
        return isinstance(target.error, Cancelled)

    def _greeted(self, call: Call, greeting: Any) -> None:
        """The node answered a :hello; one that does not know the method may have answered anything."""
        if isinstance(greeting, dict):
            self.greeting = greeting
            if call is self._hello:
                self._acks = self._settings.acks

    def _not_an_answer(self, id: Any, result: Any) -> None:
        """A reply to no call that waits: late, or about the connection itself."""
        error = refusal(result) if id is None else None
        if error is not None:
            self.hang_up = f"the node said: {error}"

    def _not_a_reply(self, message: Any) -> None:
        match message:
            case [":ping", id]:
                self._out.append(frame(PING, values.pack(id), TRUE))
            case _:
                self.hang_up = f"the node sent {message!r:.100}, which is neither a reply nor a ping"

    def _undecodable(self, reply: bytes, error: ValueError) -> None:
        """A reply without a form in Python fails its own call only, if it is one."""
        try:
            call = self._calls.get(id_in(reply) or 0)
        except ValueError as reason:
            self.hang_up = str(reason)
            return
        if call is not None and call.sent:
            self._end(call, error=RemoteProtocolError(f"the value received has no form in Python: {error}"))

    # Time.

    def tick(self, now: float) -> None:
        """End the calls whose time is over; ping a node that is silent although it owes an answer."""
        for call in self._deadlines.due(now):
            if call is self._hello:
                self.hang_up = f"the node did not answer :hello within {HELLO_S:g} s"
            elif call.sent:
                self._withdraw(call)
                self._end(call, error=call.timed_out())
            else:
                self._end(call, error=self.unreachable())
        if self.wait_for_probe(now) == 0:
            if self._silence.means_death:
                self.hang_up = f"the node has been silent for {2 * PROBE_S:g} s, even to a ping"
            else:
                self._silence.pinged(now)
                self._last_id += 1
                self._out.append(frame(PING, values.pack(self._last_id)))

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next tick, None if there is nothing to wait for."""
        waits = (self._deadlines.wait(now), self.wait_for_probe(now))
        return min((seconds for seconds in waits if seconds is not None), default=None)

    def wait_for_probe(self, now: float) -> float | None:
        """Return the seconds until silence calls for a tick, None while it does not matter."""
        # An original node may close the connection on an unknown method, so only those that greeted are pinged.
        if self.greeting is None or not self._calls or not self.connected:
            return None
        return self._silence.wait(now)

    # Ends.

    def _end(self, call: Call, value: Any = None, error: Exception | None = None) -> None:
        self._drop(call)
        call.end(value, error)
        self.ended.append(call)

    def _end_cancelled(self, call: Call) -> None:
        self._end(call, error=Cancelled("the call was cancelled by its own client"))

    def _drop(self, call: Call) -> None:
        del self._calls[call.id]
        self._deadlines.discard(call, call.expires)
        if self._leaving is not None:
            self._left(call)

    def _withdraw(self, call: Call) -> None:
        """Have the node forget a call; what it answers finds no call any more."""
        if call.sent and call.kind in MEETINGS:
            self._out.append(self._cancel_frame(call.id))

    def _cancel_frame(self, id: int) -> bytes:
        self._last_id += 1
        return frame(CANCEL, values.pack(self._last_id), values.pack(id))
