"""What is asked over the lines to a node and what is answered: frames out, bytes in, outcomes.

Knows no socket, no clock and no thread: `now` is an argument, in seconds on any one clock. Which
lines there are, and which of them a call goes over, is decided by `calls.Calls`.
"""

from __future__ import annotations

import abc
import contextlib
import math
import reprlib
from typing import Any, Final

import msgpack

from skywalker.clients.call import SILENT_NODE, Call
from skywalker.clients.core import LineCore
from skywalker.clients.homes import refused
from skywalker.clients.line import Line, Stay
from skywalker.clients.requests import TIMED, Kind, elements_of, id_in
from skywalker.clients.settings import Settings, is_about_us
from skywalker.errors import (
    Cancelled,
    Closed,
    Draining,
    OutcomeUnknown,
    RemoteProtocolError,
    RequestError,
    SkywalkerError,
    TimedOut,
    UnknownMethod,
)
from skywalker.wire import values
from skywalker.wire.junction import ACK, CANCEL, PING, TRUE, frame, is_timeout, refusal, topic_answer

_OWN: Final[frozenset[Kind]] = frozenset(("hello", "nodes", "ping"))
"""What a client asks of itself too."""


class Dialogue(LineCore):
    """All calls of one client that have not ended."""

    main: Line

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.where)
        self.main = Line(self.touched)
        self._settings = settings
        self._requests = settings.requests()
        self._first_dialect = bool(settings.timeout_value)
        self._calls: dict[int, Call] = {}  # in the order they were begun, whatever happened since
        self._last_id = 0

    @property
    def busy(self) -> bool:
        return bool(self._calls)

    # What the lines are for.

    @abc.abstractmethod
    def _lines(self) -> list[Line]:
        """Return the lines on which an answer may be owed."""

    @abc.abstractmethod
    def _line_for(self, call: Call, arguments: tuple[Any, ...], now: float) -> Line:
        """Return the line for a new call."""

    @abc.abstractmethod
    def _leave(self, line: Line, now: float) -> None:
        """Leave a line: take its calls back, and make no more there."""

    @abc.abstractmethod
    def _greeted(self, line: Line, call: Call, greeting: Any, now: float) -> None:
        """A :hello was answered."""

    @abc.abstractmethod
    def _not_known(self, hello: Call, now: float) -> None:
        """The node of the main line knows no :hello, which is no reason to leave it."""

    @abc.abstractmethod
    def _crossed(self, joins: Line | Stay, answered: bool, now: float) -> None:
        """The barrier before a line, or that keeps a topic where it was, has ended."""

    @abc.abstractmethod
    def _pushed(self, line: Line, version: str, leaving: bool, now: float) -> None:
        """A node said which ring it uses from now on, and whether it is going away."""

    @abc.abstractmethod
    def _told(self, call: Call, answer: Any, now: float) -> None:
        """A :nodes was answered, or with None: was not."""

    @abc.abstractmethod
    def _unbind(self, call: Call) -> None:
        """A call whose topic is bound to a line has ended."""

    # The caller's side.

    def begin(self, call: Call, kind: Kind, arguments: tuple[Any, ...], timeout: float, now: float) -> None:
        self._enter(call, kind, self._requests.encode(self._last_id + 1, kind, arguments, timeout), timeout, now)
        line = self._line_for(call, arguments, now)
        if line.takes_calls:
            line.put(call, now)

    def _enter(self, call: Call, kind: Kind, frame: bytes, timeout: float, now: float) -> None:
        """Start a call whose frame bears the next id."""
        id = self._last_id = self._last_id + 1
        call.start(id, kind, frame, timeout, now)
        self._calls[id] = call
        self._deadlines.add(call, call.expires)

    def cancel(self, call: Call, canceller: Call, timeout: float, now: float) -> None:
        question = self._requests.encode(self._last_id + 1, "cancel", (call.id,), timeout)
        self._enter(canceller, "cancel", question, timeout, now)
        if not self.owns(call):
            self._end(canceller, False)
        elif call.line is None:
            self._end_cancelled(call)
            self._end(canceller, isinstance(call.error, Cancelled))
        else:
            if call.cancellers is None:
                call.cancellers = []
            call.cancellers.append(canceller)
            call.line.put(canceller, now)

    def abandon(self, call: Call, now: float) -> None:
        if self.owns(call):
            self._withdraw(call)
            self._end_cancelled(call)
        elif self.unacknowledged and (line := self.unacknowledged.pop(call, None)) is not None:
            line.write(self._cancel_frame(call.id))  # gives the value back
            call.end(error=_cancelled())

    def acknowledge(self, call: Call) -> None:
        if self.unacknowledged and (line := self.unacknowledged.pop(call, None)) is not None:
            line.write(frame(ACK, values.pack(call.id)))

    def owns(self, call: Call) -> bool:
        return self._calls.get(call.id) is call

    def close(self, error: SkywalkerError) -> None:
        for call in [*self._calls.values()]:
            if self.owns(call):  # one that cancels another ends with that
                self._end(call, error=error)

    # What comes.

    def receive(self, line: Line, data: bytes, now: float) -> None:
        line.heard(now)
        if line.tail:
            data = line.tail + data
        pos, size = 0, len(data)
        while size - pos >= 2 and not line.hang_up:
            end = pos + 2 + (data[pos] << 8 | data[pos + 1])
            if end > size:
                break
            line.has_spoken = True
            try:
                reply = values.unpack(data[pos + 2 : end])
            except ValueError as error:
                self._undecodable(line, data[pos:end], error, now)
            else:
                self._reply(line, reply, data, pos, end, now)
            pos = end
        line.tail = data[pos:]

    def _reply(self, line: Line, reply: Any, data: bytes, pos: int, end: int, now: float) -> None:
        if type(reply) is not list or len(reply) != 3:
            self._not_a_reply(line, reply)
            return
        method, id, result = reply
        # An id of another type may equal one of ours, as true equals 1.
        call = self._calls.get(id) if type(id) is int else None
        if call is None or call.line is not line:
            self._not_an_answer(line, method, id, result, now)
            return
        if type(result) is msgpack.ExtType and self._node_said(line, call, result, now):
            return
        if self._first_dialect and call.kind in ("send", "recv"):
            result_bytes = elements_of(data[pos:end])[2]
            if self._requests.says_timed_out(result_bytes):
                self._end(call, error=call.timed_out())
                return
        self._answered_by(line)
        if call.kind == "hello":
            self._end(call, result)
            self._greeted(line, call, result, now)
            return
        if call.kind == "cancel":
            return  # it ends with the call that it is about, which the node answers first if it is not asked twice
        if line.acks and (call.kind == "recv" or call.kind == "take"):
            if call.cancellers or line.leaving is not None:
                # Our :cancel gives the value back, but at an older node that read it as somebody came: there this does.
                line.write(self._cancel_frame(id))
                self._given_back(line, call)
                return
            if self.unacknowledged is None:
                line.write(frame(ACK, values.pack(id)))
            else:
                self.unacknowledged[call] = line
        self._end(call, result)
        if call.joins is not None:
            self._crossed(call.joins, True, now)
        elif call.kind == "nodes":
            self._told(call, result, now)

    def _answered_by(self, line: Line) -> None:
        if line is self.main:
            self.failures = 0

    def _node_said(self, line: Line, call: Call, result: msgpack.ExtType, now: float) -> bool:
        """Whether an extension value is the node's own word on the call; then that is its outcome."""
        if is_timeout(result) and (call.kind == "take" or not self._first_dialect):
            self._answered_by(line)
            self._end(call, error=call.timed_out())
            return True
        error = refusal(result)
        if error is not None:
            self._refused(line, call, error, now)
        return error is not None

    def _refused(self, line: Line, call: Call, error: RequestError, now: float) -> None:
        if call is line.hello:
            if isinstance(error, UnknownMethod) and self._may_be_original(line):
                self._not_known(call, now)
                return
            if line is self.main and self._settings.refuses_us(error):
                # Whatever else was asked, on this connection or the next, would only be refused the same way.
                self.close(error)
            line.end(str(error))
        elif call.joins is not None:
            self._end_with(call, error, now)
        elif isinstance(error, Draining):
            if line.leaving is None:
                self._leave(line, now)  # first, since lines that have younger calls on its topic are left with it
            self._given_back(line, call)
        elif isinstance(error, Cancelled) and line.leaving is not None and not call.cancellers:
            self._park(line, call)
        else:
            self._answered_by(line)
            self._end_with(call, error, now)

    def _may_be_original(self, line: Line) -> bool:
        """Whether a line will do although its node knows no :hello: an original one."""
        return line is self.main and self._settings.hello is None

    def _take_back(self, line: Line) -> None:
        """Take every call back from a node that is left, to issue it again on another connection.

        Each is cancelled there first, so that none of them meets somebody twice.
        """
        line.takes_calls = False
        for call in [call for call, its_line in (self.unacknowledged or {}).items() if its_line is line]:
            self.acknowledge(call)  # while there is a connection
        line.leaving = {id for id, call in self._calls.items() if call.line is line}
        for id in line.leaving:
            if self._calls[id].kind in TIMED:
                line.write(self._cancel_frame(id))
        line.end_when_left()

    def _given_back(self, line: Line, call: Call) -> None:
        """The node holds a call no more that has not met anybody: another is to have it, unless it is cancelled."""
        if call.cancellers:
            self._end_cancelled(call)
        else:
            self._park(line, call)

    def _park(self, line: Line, call: Call) -> None:
        line.take_off(call)
        line.left(call)

    def _not_an_answer(self, line: Line, method: Any, id: Any, result: Any, now: float) -> None:
        """A reply to no call that waits: late, about the connection itself, or news."""
        match method, id, result:
            case ":ring", None, {"version": str(version), "leaving": bool(leaving)}:
                self._pushed(line, version, leaving, now)
            case _, None, _ if error := refusal(result):
                if line is self.main and is_about_us(error):
                    self.close(refused(self._settings.where, error))
                line.end(f"the node said: {error}")
            case ":recv!" | ":take!", int(), _ if line.acks and not (is_timeout(result) or refusal(result)):
                line.write(self._cancel_frame(id))  # gives the value back, which nobody waits for here any more

    def _not_a_reply(self, line: Line, message: Any) -> None:
        match message:
            case [":ping", id]:
                line.write(frame(PING, values.pack(id), TRUE))
            case _:
                line.end(f"the node sent {reprlib.repr(message)}, which is neither a reply nor a ping")

    def _undecodable(self, line: Line, reply: bytes, error: ValueError, now: float) -> None:
        """A reply without a form in Python fails its own call only, if it is one."""
        try:
            id = id_in(reply) or 0
        except ValueError as reason:
            line.end(str(reason))
            return
        call = self._calls.get(id)
        if line.acks and (call is None or call.kind in ("recv", "take")):
            # Our :cancel gives the value back: somebody else may make sense of it.
            drops = call is not None and call.drops and not call.cancellers and line.leaving is None
            line.write(frame(ACK, values.pack(id)) if drops else self._cancel_frame(id))
        if call is None or call.line is not line:
            return
        if call.kind == "topic":
            with contextlib.suppress(ValueError):  # then it is no answer to that
                self._end(call, topic_answer(elements_of(reply)[2]))
                self._answered_by(line)
                return
        told = RemoteProtocolError(f"the value received cannot be represented in Python: {error}")
        self._end_with(call, told, now, answered=True)  # a barrier wants to know only that it was answered

    # Time.

    def tick(self, now: float) -> None:
        """End the calls whose time is over; ping a node that is silent although it owes an answer."""
        for call in self._deadlines.due(now):
            if not self.owns(call):
                continue  # it has ended with the one that it cancels
            line = call.line
            if line is not None and call is line.hello and line.has_spoken and self._may_be_original(line):
                self._not_known(call, now)
            elif line is not None and call in (line.hello, line.check):
                line.end(f"the node did not answer :{call.kind} in time")
            elif line is not None:
                self._withdraw(call)
                self._end_with(call, self._not_answered(call), now)
            else:
                self._end(call, error=self.unreachable())
        for line in self._lines():
            if line.wait_for_probe(now) == 0:
                self._last_id += 1
                line.probe(self._last_id, now)
        if now >= self.due_at:
            own = [call.expires for call in self._calls.values() if call.joins is not None or call.kind in _OWN]
            silence = self.wait_for_probe(now)
            self.due_at = min([*own, math.inf if silence is None else now + silence], default=math.inf)

    def _not_answered(self, call: Call) -> TimedOut | OutcomeUnknown:
        """Return the error of a call whose time is over while the node has it, or is about to get it."""
        if call.kind != "send":
            return call.timed_out()
        call.doubt = call.doubt or SILENT_NODE
        return call.unknown()

    def wait_for_probe(self, now: float) -> float | None:
        soonest = None
        for line in self._lines():
            wait = line.wait_for_probe(now)
            if wait is not None and (soonest is None or wait < soonest):
                soonest = wait
        return soonest

    # Ends.

    def _end(self, call: Call, value: Any = None, error: Exception | None = None) -> None:
        if call.doubt and error is not None and not isinstance(error, (Closed, OutcomeUnknown)):
            error = call.unknown(error)
        self._drop(call)
        call.end(value, error)
        self.ended.append(call)
        cancellers, call.cancellers = call.cancellers, None
        for canceller in cancellers or ():
            if self.owns(canceller):
                self._end(canceller, isinstance(error, Cancelled))

    def _end_with(self, call: Call, error: Exception, now: float, *, answered: bool = False) -> None:
        """End a call with an error, and do what waits for it to end, if it may be one of ours."""
        self._end(call, error=error)
        if call.joins is not None:
            self._crossed(call.joins, answered, now)
        elif call.kind == "nodes":
            self._told(call, None, now)

    def _end_cancelled(self, call: Call) -> None:
        self._end(call, error=_cancelled())

    def _drop(self, call: Call) -> None:
        del self._calls[call.id]
        self._deadlines.discard(call, call.expires)
        line = call.line
        if line is not None:
            line.waiting -= 1
            if line.leaving is not None:
                line.left(call)
        if call.stay is not None:
            self._unbind(call)

    def _withdraw(self, call: Call) -> None:
        """Have the node forget a call; what it answers finds no call any more."""
        if call.line is not None and call.kind in TIMED:
            call.line.write(self._cancel_frame(call.id))

    def _cancel_frame(self, id: int) -> bytes:
        self._last_id += 1
        return frame(CANCEL, values.pack(self._last_id), values.pack(id))


def _cancelled() -> Cancelled:
    return Cancelled("the call was cancelled by its own client")
