"""One connection as the calls see it: which of them it has, and what its node said of itself."""

from __future__ import annotations

from typing import Any, Final, Protocol

from skywalker.clients.stream import PROBE_S, Stream
from skywalker.wire import values
from skywalker.wire.junction import PING, frame

HELLO_S: Final = 10.0
"""Seconds that a node has to answer the :hello that opens a connection."""


class Carried(Protocol):
    """A call, as the line sees it that it is put on."""

    id: int
    frame: bytes
    ended: bool
    begins_at: int
    line: Line | None


class Line(Stream):
    """A connection, from before it is made until it is lost; the next one is another line."""

    __slots__ = ("acks", "check", "follows", "greeting", "has_spoken", "hello", "leaving", "takes_calls", "version")

    def __init__(self, touched: list[Line]) -> None:
        super().__init__(touched)
        self.takes_calls = False  # connected, and neither kept waiting for an older line nor left
        self.greeting: dict[Any, Any] | None = None  # what the node said of itself, if it knows :hello
        self.hello: Carried | None = None  # ours, that opened the connection
        self.has_spoken = False  # whether the node has said anything whole
        self.check: Carried | None = None  # ours, that asks whether the node lives, where that is in doubt
        self.version = ""  # of the ring that the node uses, as far as it said
        self.acks = False
        self.leaving: set[int] | None = None  # once the node drains: ids of the calls that it still holds
        self.follows = False  # whether it is left only since another is, or is lost, that had older calls

    def knows(self, extension: str) -> bool:
        """Whether the node has said that it knows this beyond the published dialects."""
        match self.greeting:
            case {"extensions": [*extensions]}:
                return extension in extensions
        return False

    def put(self, call: Carried, now: float) -> None:
        """Give the node a call."""
        call.line = self
        if not self.waiting:
            self._silence.broken(now)  # it counts from when an answer is owed
        self.waiting += 1
        call.begins_at = self.taken + self.output_bytes
        self.write(call.frame)

    def take_off(self, call: Carried) -> None:
        """Count a call, which this line was given, as its no more."""
        call.line = None
        self.waiting -= 1

    def may_have(self, call: Carried) -> bool:
        """Whether some part of a call, which this line was given, may have reached the node."""
        return call.begins_at < self.taken - self.unwritten

    def left(self, call: Carried) -> None:
        """The node does not hold this call any more; once it holds none, the line that it drains is done."""
        if self.leaving is not None:
            self.leaving.discard(call.id)
            self.end_when_left()

    def end_when_left(self) -> None:
        """Have it closed if the node that is left holds no call."""
        if not self.leaving:
            self.end("another connection with older calls is left or lost" if self.follows else "the node drains")

    def wait_for_probe(self, now: float) -> float | None:
        """Return the seconds until silence calls for a probe, None while it does not matter."""
        # An original node may close the connection on an unknown method, so only those that greeted are pinged.
        if self.greeting is None or not self.waiting or self.hang_up:
            return None
        return self._silence.wait(now)

    def is_idle(self, now: float, seconds: float) -> bool:
        """Whether no call is under way, and the node has not written for so long."""
        return not self.waiting and self._silence.has_lasted(now, seconds)

    def probe(self, id: int, now: float) -> None:
        """Ping a node that has been silent, or give it up if it was pinged before."""
        if self._silence.means_death:
            self.end(f"the node has been silent for {2 * PROBE_S:g} s, even to a ping")
        else:
            self._silence.pinged(now)
            self.write(frame(PING, values.pack(id)))


class Stay:
    """A topic that is bound to a line."""

    __slots__ = ("asked", "calls", "is_kept_back", "line", "topic")

    def __init__(self, topic: bytes, line: Line) -> None:
        self.topic = topic
        self.line = line
        self.calls = 0  # that have not ended
        self.asked = False  # whether the node was asked about the topic, and need not be again
        self.is_kept_back = False  # whether calls wait for the answer
