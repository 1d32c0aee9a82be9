"""The calls of one process among themselves: a junction without a node.

As `Calls` it does no I/O and reads no clock. Every call goes through its very frame, so that
values, topics, limits and errors are those of a node.
"""

from __future__ import annotations

from typing import Any, Final

from skywalker import junction
from skywalker.address import Address
from skywalker.clients.call import Call
from skywalker.clients.requests import Kind, Requests, elements_of
from skywalker.deadlines import Deadlines
from skywalker.errors import BadFrame, BadTopic, Cancelled, RemoteProtocolError, SkywalkerError
from skywalker.members import Member
from skywalker.ring import random_tokens
from skywalker.wire import values
from skywalker.wire.junction import topic_answer, topic_info

NAME: Final = "local"


class LocalCall(junction.Call):
    """A send!, recv! or :take! of this process at the junction."""

    __slots__ = ("bus", "call", "given")

    def __init__(
        self, bus: Bus, call: Call, topic: bytes, since: float, value: bytes | None, group: bytes | None
    ) -> None:
        super().__init__(topic, since, value, group)
        self.bus = bus
        self.call = call
        self.given: junction.Call | None = None  # whose value a listener got

    def give(self, send: junction.Call) -> bool:
        assert send.value is not None
        self.given = send
        try:
            self.bus.end(self.call, values.unpack(send.value))
        except ValueError as error:
            told = f"the value received cannot be represented in Python: {error}"
            self.bus.end(self.call, error=RemoteProtocolError(told))
        return True

    def met(self) -> None:
        self.bus.end(self.call, True)

    def missed(self) -> None:
        """Never happens: a listener in process cannot be lost between offer and outcome."""


class Bus:
    """All calls of this process that have not ended, and where they meet."""

    def __init__(self) -> None:
        self.ended: list[Call] = []
        self._requests = Requests()
        self._junction = junction.Junction()
        self._waiting: dict[Call, LocalCall] = {}
        self._deadlines = Deadlines()
        self._last_id = 0
        self._tokens = random_tokens()

    def begin(self, call: Call, kind: Kind, arguments: tuple[Any, ...], timeout: float, now: float) -> None:
        """Start a call. Raises LocalProtocolError or TooLarge, and then nothing was started."""
        self.tick(now)  # whose time is over must meet nobody any more
        id = self._last_id + 1
        frame = self._requests.encode(id, kind, arguments, timeout)
        call.start(id, kind, frame, timeout, now)
        call.expires = call.deadline  # nobody else decides
        self._last_id = id
        try:
            elements = elements_of(frame)
            match kind:
                case "send":
                    topic = values.topic_bytes(elements[3])
                    self._send(LocalCall(self, call, topic, now, elements[4], None))
                case "recv" | "take":
                    topic = values.topic_bytes(elements[3])
                    group = values.topic_bytes(elements[4]) if kind == "take" else None
                    self._listen(LocalCall(self, call, topic, now, None, group))
                case "topic":
                    self.end(call, self._census(values.topic_bytes(elements[2]), now))
                case "tokens":
                    self.end(call, [*self._tokens])
                case "hello":
                    self.end(call, {"name": NAME, "worker": 0, "workers": 1, "tokens": {0: [*self._tokens]}})
                case "nodes":
                    itself = Member(NAME, NAME, Address("", 0), 1, False, tuple(self._tokens))
                    self.end(call, {"version": "", "nodes": [itself.as_map()], "more": False})
                case _:
                    self.end(call, True)
        except (BadFrame, BadTopic) as error:
            self.end(call, error=error)

    def _send(self, send: LocalCall) -> None:
        if self._junction.send(send):
            for _ in range(send.offers):
                self._junction.confirm(send)
        else:
            self._wait(send)

    def _listen(self, listener: LocalCall) -> None:
        if not self._junction.listen(listener):
            self._wait(listener)
        elif listener.given is not None:
            self._junction.confirm(listener.given)

    def _wait(self, waiter: LocalCall) -> None:
        call = waiter.call
        if call.timeout == 0:
            self.end(call, error=call.timed_out())
            return
        self._junction.wait(waiter)
        self._waiting[call] = waiter
        self._deadlines.add(call, call.expires)

    def _census(self, topic: bytes, now: float) -> Any:
        count = self._junction.census(topic)
        age = 0.0 if count.oldest is None else now - count.oldest
        return topic_answer(topic_info(count.receivers, count.takers, count.senders, 0, round(age * 1000)))

    def cancel(self, call: Call, canceller: Call, timeout: float, now: float) -> None:
        """End `call` with Cancelled if it still waits. `canceller` ends with whether it did."""
        self.tick(now)
        canceller.start(0, "cancel", b"", timeout, now)
        waits = self.owns(call)
        self.abandon(call, now)
        self.end(canceller, waits)

    def abandon(self, call: Call, now: float) -> None:
        """End `call` because nobody wants its outcome any more."""
        if self.owns(call):
            self._withdraw(call, Cancelled("the call was cancelled by its own client"))

    def owns(self, call: Call) -> bool:
        """Whether `call` was begun here and has not ended."""
        return call in self._waiting

    def tick(self, now: float) -> None:
        """End the calls whose time is over."""
        for call in self._deadlines.due(now):
            self._withdraw(call, call.timed_out())

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next tick, None if there is nothing to wait for."""
        return self._deadlines.wait(now)

    def close(self, error: SkywalkerError) -> None:
        """End every call with `error`."""
        for call in [*self._waiting]:
            self._withdraw(call, error)

    def _withdraw(self, call: Call, error: SkywalkerError) -> None:
        self._junction.withdraw(self._waiting[call])
        self.end(call, error=error)

    def end(self, call: Call, value: Any = None, error: Exception | None = None) -> None:
        """Set the outcome of a call; it waits no more."""
        if self._waiting.pop(call, None) is not None:
            self._deadlines.discard(call, call.expires)
        call.end(value, error)
        self.ended.append(call)
