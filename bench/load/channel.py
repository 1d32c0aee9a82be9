"""One side of a pair: its calls in flight, made again and again, whatever is answered.

What is read at a time is dealt with at a time: one comparison of all its replies with the bytes they must be, one write
of all the calls that they set free. Nothing is decoded, yet every reply is checked. Only where something differs is it
taken apart, and what failed is counted by its code.

A worker that drains refuses calls. Then the channel does as a client does: it leaves for another
connection, issues there what was refused, and closes the old one once nothing waits there any more.
"""

from __future__ import annotations

import contextlib
import functools
import math
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from bench.errors import Stalled, Unreachable, WrongReply
from bench.load.dial import Contact, Line
from bench.load.journal import Notes
from bench.load.loop import Loop
from bench.load.plan import LOST, TIMED_OUT, WRONG
from bench.servers.peer import Script
from bench.servers.skywalker import call_after, lane_of
from skywalker.errors import Draining
from skywalker.members import PlaceRing
from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, Frame, split
from workers.engine.transport import Transport

_PONG: Final = wire.frame(wire.PING, wire.NIL, wire.TRUE)


class Connection(Line):
    """A line to one worker, and the lanes whose calls are in flight there."""

    __slots__ = ("foreign", "known", "lanes", "tail")

    def __init__(self, link: Transport, epoll: select.epoll, foreign: bytes | None) -> None:
        """`foreign` are the lanes whose topics the worker does not own, None where that is not known."""
        super().__init__(link, epoll)
        self.known = foreign is not None
        self.foreign = foreign or b""
        self.lanes: set[int] = set()  # in flight
        self.tail = b""  # the beginning of a reply


class Channel:
    """The receivers of a pair, or its senders. Of those that are timed it is noted how long each call took."""

    def __init__(
        self,
        script: Script,
        worker: int | None,
        loop: Loop,
        *,
        wanted: Callable[[Channel], None],
        failed: Callable[[Channel, int], None],
        pace: Pace | None = None,
        notes: Notes | None = None,
        timed: bool = False,
    ) -> None:
        """`wanted` is told when it has no connection to call on, and is to be opened with another.

        `failed` is told of a lane whose call failed: it makes none before it is refilled.
        """
        self.script = script
        self.worker = worker  # where it wants to be
        self.opened_at = 0.0
        self.refills = True  # whether an answered call is made again
        self.answered = 0  # calls answered well
        self.open_calls = 0  # calls made less those answered: below 0 if one was answered twice
        self.forwarded = 0  # of them, those that had come to a worker that does not own their topic
        self.placed = 0  # calls of which that is known
        self._size = len(script.replies[0])
        self._head = script.replies[0][:2]
        self._only = script.replies[0] if len(script.calls) == 1 else b""
        self._loop = loop
        self._wanted = wanted
        self._failed = failed
        self._pace = pace
        self._notes = notes
        self._at_once = pace is None and notes is None and not timed
        self._connection: Connection | None = None  # to call on
        self._left: list[Connection] = []  # where calls are still to be answered
        self._free = bytes(range(len(script.calls)))  # lanes to be refilled once there is a connection
        self._refused = b""  # lanes whose calls are to be issued again there
        self._began = [0.0] * len(script.calls) if timed else None  # when a call was made, or was due
        self._made = [0.0] * len(script.calls) if timed and pace else self._began  # maybe later than it was due

    @property
    def in_flight(self) -> int:
        """Calls that were made and not answered."""
        return len(self._refused) + sum(len(each.lanes) for each in self._connections())

    def _connections(self) -> list[Connection]:
        return [*self._left, *([self._connection] if self._connection else [])]

    def open(self, contact: Contact, ring: PlaceRing | None) -> Callable[[], object]:
        """Go on with a new connection; return what is to be called whenever that is ready."""
        foreign = None
        if ring is not None and contact.worker is not None:
            topics = enumerate(self.script.topics)
            foreign = bytes(lane for lane, topic in topics if ring.owner(token_of(topic)).worker != contact.worker)
        connection = self._connection = Connection(contact.link, self._loop.epoll, foreign)
        self.opened_at = now = time.monotonic()
        free, refused, self._free, self._refused = self._free, self._refused, b"", b""
        if self.script.answers:
            connection.lanes.update(free)
        else:
            self.refill(free, now)
        self._issue_again(refused, now)
        return functools.partial(self.ready, connection)

    def refill(self, lanes: bytes, now: float) -> None:
        """Have lanes make calls, as soon as there is a connection."""
        if self._connection is None:
            self._free += lanes
        elif not self.refills:
            pass
        elif self._pace is None:
            self.make(lanes, now)
        else:
            self._pace.release(self, lanes, now)

    def make(self, lanes: bytes, now: float, due: Sequence[float] | None = None) -> None:
        """Make the calls of some lanes, each of which may have been due at its own time. There must be a connection."""
        began, made = self._began, self._made
        if began is not None and made is not None:
            for lane in lanes:
                made[lane] = now
            if began is not made:
                for lane, time_due in zip(lanes, due or [now] * len(lanes), strict=True):
                    began[lane] = time_due
        if self._notes is not None:
            self._notes.made(lanes, due or [now] * len(lanes))
        self.open_calls += len(lanes)
        self._write(lanes, self._calls(lanes))

    def _calls(self, lanes: bytes) -> bytes:
        calls = self.script.calls
        return calls[lanes[0]] if len(lanes) == 1 else b"".join([calls[lane] for lane in lanes])

    def close(self) -> None:
        """Hang up."""
        for connection in self._connections():
            connection.close()

    def _issue_again(self, lanes: bytes, now: float) -> None:
        """Issue calls that were refused, as soon as there is a connection."""
        if self._connection is None:
            self._refused += lanes
        elif lanes:
            calls, made = self.script.calls, self._made
            again = [call_after(calls[lane], now - made[lane]) if made else calls[lane] for lane in lanes]
            self._write(lanes, b"".join(again))

    def _write(self, lanes: bytes, data: bytes) -> None:
        connection = self._connection
        assert connection is not None
        connection.lanes.update(lanes)
        try:
            connection.write(data)
        except Unreachable:
            self._lose(connection)

    def ready(self, connection: Connection | None = None) -> bool:
        """Read replies, and make the calls again that they answered; return whether anything came.

        Without a connection, it is the current one.
        """
        connection = connection or self._connection
        if connection is None or connection.closed:
            return False  # by something else that was ready
        try:
            data = connection.read()
        except Unreachable:
            self._lose(connection)
            return True
        if data is None:
            return False
        if data == self._only and not connection.tail:
            lanes: bytes | None = b"\0"
        else:
            data = connection.tail + data
            end = len(data) - len(data) % self._size
            tail = data[end:]
            lanes = self.script.lanes_of(data[:end])
            if lanes is None or (tail and tail[:2] != self._head[: len(tail)]):
                lanes, tail = self._sift(connection, data)
            connection.tail = tail
        if lanes:
            self._answered(connection, lanes)
        if connection is not self._connection and not connection.lanes and not connection.closed:
            connection.close()
            self._left.remove(connection)
        return True

    def _answered(self, connection: Connection, lanes: bytes) -> None:
        """Take note of calls answered well, and make them again."""
        self.answered += len(lanes)
        if connection.known:
            self.placed += len(lanes)
            if connection.foreign:
                self.forwarded += len(lanes) - len(lanes.translate(None, connection.foreign))
        if self._at_once and self.refills and connection is self._connection:
            # They are in flight again at once, so that nothing has changed.
            try:
                connection.write(self._calls(lanes))
            except Unreachable:
                self._lose(connection)
            return
        self.open_calls -= len(lanes)
        connection.lanes.difference_update(lanes)
        now = time.monotonic()
        if self._notes is not None:
            self._notes.answered(lanes, now, connection.foreign)
        began, noted = self._began, self._loop.counts.latencies_us
        if began is not None:
            for lane in lanes:
                took = int((now - began[lane]) * 1e6)
                noted[took] = noted.get(took, 0) + 1
        self.refill(lanes, now)

    def _lose(self, connection: Connection) -> None:
        """The server has closed it: what was in flight there is lost."""
        connection.close()
        lanes = bytes(connection.lanes)
        self._loop.fail(LOST, len(lanes))
        if connection is not self._connection:
            self._left.remove(connection)
        else:
            if not lanes:
                self._loop.counts.moved += 1
            self._leave()
        self.refill(lanes, time.monotonic())

    def _leave(self) -> None:
        """Go on elsewhere."""
        if self._pace is not None:
            self._free += self._pace.withdraw(self)
        self._connection = None
        self._wanted(self)

    def _move(self, connection: Connection, lanes: bytes) -> None:
        """A worker that drains has refused calls."""
        connection.lanes.difference_update(lanes)
        if connection is self._connection:
            self._loop.counts.moved += 1
            self._left.append(connection)
            self._leave()
        self._issue_again(lanes, time.monotonic())

    def _sift(self, connection: Connection, data: bytes) -> tuple[bytes, bytes]:
        """Return the lanes that are answered well and the beginning of a reply; count all else."""
        if not self.script.topics:
            return self._without_pings(connection, data)
        frames, tail = split(data)
        well, refused = bytearray(), bytearray()
        for frame in frames:
            lane = lane_of(frame[1]) if not isinstance(frame, BadFrame) and len(frame) == 3 else None
            if lane is None or lane >= len(self.script.replies):
                self._stranger(connection, frame)
            elif wire.frame(*frame) == self.script.replies[lane]:
                well.append(lane)
            elif (code := self._code(frame)) == Draining.code:
                refused.append(lane)
            else:
                connection.lanes.discard(lane)
                self._fail(code, frame)
                if self._notes is not None:
                    self._notes.failed(lane, time.monotonic(), code)
                self._failed(self, lane)
        if refused:
            self._move(connection, bytes(refused))
        return bytes(well), tail

    def _without_pings(self, connection: Connection, data: bytes) -> tuple[bytes, bytes]:
        """Return the same of what another server says, who may only ask whether we live."""
        ping = self.script.ping
        if ping and ping in data:
            connection.write(self.script.pong)
            data = data.replace(ping, b"")
        end = len(data) - len(data) % self._size
        tail = data[end:]
        lanes = self.script.lanes_of(data[:end])
        if lanes is None or not (tail[:2] == self._head[: len(tail)] or ping.startswith(tail)):
            self._loop.fail(WRONG, 1, repr(data[:200]))
        return lanes or b"", tail

    def _stranger(self, connection: Connection, frame: Frame) -> None:
        """Deal with what answers none of the calls: the node asks whether we live, or why it hangs up."""
        if not isinstance(frame, BadFrame) and tuple(frame) == (wire.PING, wire.NIL):
            with contextlib.suppress(Unreachable):  # where that fails, so does the next read
                connection.write(_PONG)
        else:
            self._fail(self._code(frame), frame)

    def _fail(self, code: str, frame: Frame) -> None:
        self._loop.fail(code, 1, repr(tuple(frame)))

    def _code(self, frame: Frame) -> str:
        """Return what a frame that is no right answer counts as."""
        result = b"" if isinstance(frame, BadFrame) else frame[-1]
        if result in (wire.TIMED_OUT, wire.CLOJURE_TIMED_OUT):
            return TIMED_OUT
        try:
            error = wire.refusal(values.unpack(result))
        except ValueError:
            error = None
        return error.code if error else WRONG


class Schedule:
    """A steady rate, in calls a second.

    A call that is due while no lane is free is made late, and none is skipped: how long it took is
    counted from when it was due, so that a node which stalls is not spared the calls of that time.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._start = math.inf
        self._free: deque[tuple[Channel, int]] = deque()
        self.made = 0

    def start(self, now: float) -> None:
        """Have the first call be due now."""
        self._start = now

    def due(self, now: float) -> int:
        """Return how many calls have been due until now, from the first on."""
        return max(0, 1 + math.floor((now - self._start) * self._rate))

    def release(self, channel: Channel, lanes: bytes, now: float) -> None:
        """Lanes of a channel are free to make calls."""
        self._free.extend([(channel, lane) for lane in lanes])

    def withdraw(self, channel: Channel) -> bytes:
        """Take back the free lanes of a channel that has no connection."""
        lanes = bytes(lane for owner, lane in self._free if owner is channel)
        self._free = deque(entry for entry in self._free if entry[0] is not channel)
        return lanes

    def make(self, now: float) -> float:
        """Make the calls that are due, as far as lanes are free; return when there may be more to do."""
        count = min(self.due(now) - self.made, len(self._free))
        if count > 0:
            lanes: dict[Channel, bytearray] = {}
            times: dict[Channel, list[float]] = {}
            for number in range(self.made, self.made + count):
                channel, lane = self._free.popleft()
                lanes.setdefault(channel, bytearray()).append(lane)
                times.setdefault(channel, []).append(self._start + number / self._rate)
            self.made += count
            for channel, chosen in lanes.items():
                channel.make(bytes(chosen), now, times[channel])
        return self._start + self.made / self._rate if self._free else math.inf


class Step:
    """One pair, whose calls are made again only when both sides are answered."""

    def __init__(self) -> None:
        self.sides: Sequence[Channel] = ()
        self._held: dict[Channel, bytes] = {}

    def release(self, channel: Channel, lanes: bytes, now: float) -> None:
        """See Schedule."""
        self._held[channel] = self._held.get(channel, b"") + lanes
        least = min(side.answered for side in self.sides)
        for side in self.sides:
            if side in self._held and side.answered <= least and side.refills:
                side.make(self._held.pop(side), now)

    def withdraw(self, channel: Channel) -> bytes:
        """See Schedule."""
        return self._held.pop(channel, b"")


Pace = Schedule | Step
"""What decides when calls are made, where they are not made again as soon as they are answered."""


class Turn:
    """One rendezvous at a time, the pairs in turn, from the first byte written to both replies read.

    So that with several workers some topics belong to the worker a connection came to, and some to another. It waits in
    the sockets themselves and not in an epoll, which would be a good part of the time.
    """

    def __init__(self, pairs: Sequence[tuple[Channel, Channel]]) -> None:
        self._pairs = pairs
        self._next = 0

    def take(self) -> int:
        """Have the next pair meet once; return the microseconds that it took. Raises BenchError."""
        receiver, sender = self._pairs[self._next]
        self._next = (self._next + 1) % len(self._pairs)
        began = time.monotonic()
        if receiver.script.answers:
            sender.make(b"\0", began)
            _wait(receiver)
            receiver.make(b"\0", began)
            _wait(sender)
        else:
            receiver.make(b"\0", began)
            sender.make(b"\0", began)
            _wait(sender)
            _wait(receiver)
        return int((time.monotonic() - began) * 1e6)


def _wait(channel: Channel) -> None:
    """Read until its call is answered."""
    due = channel.answered + 1
    while channel.answered < due:
        if not channel.ready():
            raise Stalled("a call is not answered")
    if channel.answered > due:
        raise WrongReply("a call is answered twice")
