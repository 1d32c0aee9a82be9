"""One channel of a load: its calls in flight, made again and again, whatever is answered.

What is read at a time is compared at a time with the bytes it should be, as bench.closed_loop
does. Only where it differs is it taken apart, and what failed is counted by its code.

A worker that drains refuses calls. Then the channel does as a client does: it leaves for another
connection, issues there what was refused, and closes the old one once nothing waits there any more.
"""

from __future__ import annotations

import contextlib
import functools
import select
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from bench.errors import Unreachable
from bench.load.connection import Connection
from bench.load.contact import Contact
from bench.load.counts import LOST, TIMED_OUT, WRONG, Counts
from bench.load.scripts import LANE_AT, Script, lane_of
from bench.replies import READ_BYTES, lanes_of
from skywalker.errors import Draining
from skywalker.ring import Ring
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, Frame, split

if TYPE_CHECKING:
    from bench.load.journal import Notes
    from bench.load.schedule import Schedule

_PONG: Final = wire.reply(wire.PING, wire.NIL, wire.TRUE)


class Owner(Protocol):
    """What a channel tells of itself."""

    counts: Counts

    def wanted(self, channel: Channel) -> None:
        """It has no connection to call on, and is to be opened with another."""

    def failed(self, channel: Channel, lane: int) -> None:
        """A call failed. Its lane makes none before it is refilled."""


class Channel:
    """The receivers of a pair: each call is made again as soon as it is answered."""

    def __init__(
        self, script: Script, worker: int | None, owner: Owner, epoll: select.epoll, notes: Notes | None = None
    ) -> None:
        self.worker = worker  # where it wants to be
        self.opened_at = 0.0
        self._script = script
        self._size = len(script.replies[0])
        self._head = script.replies[0][:2]
        self._owner = owner
        self._epoll = epoll
        self._notes = notes
        self._connection: Connection | None = None  # to call on
        self._left: list[Connection] = []  # where calls are still to be answered
        self._free = bytes(range(len(script.calls)))  # lanes to be refilled once there is a connection
        self._refused = b""  # lanes whose calls are to be issued again there

    @property
    def in_flight(self) -> int:
        """Calls that were made and not answered."""
        return len(self._refused) + sum(len(each.lanes) for each in self._connections())

    def _connections(self) -> list[Connection]:
        return [*self._left, *([self._connection] if self._connection else [])]

    def open(self, contact: Contact, ring: Ring[int] | None) -> Callable[[], None]:
        """Go on with a new connection; return what is to be called whenever that is ready."""
        known = ring is not None and contact.worker is not None
        owned = self._script.owned(ring, contact.worker) if known else None
        connection = self._connection = Connection(contact.sock, self._epoll, owned)
        self.opened_at = now = time.monotonic()
        free, refused, self._free, self._refused = self._free, self._refused, b"", b""
        self.refill(free, now)
        self._issue_again(refused, now)
        return functools.partial(self._ready, connection)

    def refill(self, lanes: bytes, now: float) -> None:
        """Have lanes make calls, as soon as there is a connection."""
        if self._connection is None:
            self._free += lanes
        else:
            self.make(lanes, now)

    def make(self, lanes: bytes, now: float) -> None:
        """Make the calls of some lanes. There must be a connection."""
        if self._notes is not None:
            self._notes.made(lanes, now)
        self._issue(lanes)

    def answered(self, lanes: bytes, now: float) -> None:
        """Take note of calls answered well, and make them again."""
        self._owner.counts.received += len(lanes)
        self.refill(lanes, now)

    def close(self) -> None:
        """Hang up."""
        for connection in self._connections():
            connection.close()

    def _issue(self, lanes: bytes) -> None:
        calls = self._script.calls
        self._write(lanes, b"".join([calls[lane] for lane in lanes]))

    def _issue_again(self, lanes: bytes, now: float) -> None:
        """Issue calls that were refused, as soon as there is a connection."""
        if self._connection is None:
            self._refused += lanes
        elif lanes:
            self._write(lanes, b"".join([self._call_again(lane, now) for lane in lanes]))

    def _call_again(self, lane: int, now: float) -> bytes:
        """Return a call to be issued again."""
        return self._script.calls[lane]

    def _write(self, lanes: bytes, data: bytes) -> None:
        connection = self._connection
        assert connection is not None
        connection.lanes.update(lanes)
        try:
            connection.write(data)
        except Unreachable:
            self._lose(connection)

    def _ready(self, connection: Connection) -> None:
        """Read replies, and deal with them."""
        if connection.closed:
            return  # by something else that was ready
        try:
            data = connection.read(READ_BYTES)
        except Unreachable:
            self._lose(connection)
            return
        if data is None:
            return
        now = time.monotonic()
        data = connection.tail + data
        size = self._size
        end = len(data) - len(data) % size
        whole, tail = data[:end], data[end:]
        lanes = lanes_of(whole, size, LANE_AT, self._script.replies)
        if lanes is None or (tail and tail[:2] != self._head[: len(tail)]):
            lanes, tail = self._sift(connection, data, now)
        connection.tail = tail
        if lanes:
            connection.lanes.difference_update(lanes)
            owned = connection.owned
            if self._notes is not None:
                self._notes.answered(lanes, now, lanes if owned is None else owned)
            if owned is not None:
                self._owner.counts.placed += len(lanes)
                self._owner.counts.forwarded += len(lanes.translate(None, owned))
            self.answered(lanes, now)
        if connection is not self._connection and not connection.lanes and not connection.closed:
            connection.close()
            self._left.remove(connection)

    def _lose(self, connection: Connection) -> None:
        """The node has closed it: what was in flight there is lost."""
        connection.close()
        lanes = bytes(connection.lanes)
        self._owner.counts.fail(LOST, len(lanes))
        if connection is not self._connection:
            self._left.remove(connection)
        else:
            if not lanes:
                self._owner.counts.moved += 1
            self._leave()
        self.refill(lanes, time.monotonic())

    def _leave(self) -> None:
        """Go on elsewhere."""
        self._connection = None
        self._owner.wanted(self)

    def _move(self, connection: Connection, lanes: bytes, now: float) -> None:
        """A worker that drains has refused calls."""
        connection.lanes.difference_update(lanes)
        if connection is self._connection:
            self._owner.counts.moved += 1
            self._left.append(connection)
            self._leave()
        self._issue_again(lanes, now)

    def _sift(self, connection: Connection, data: bytes, now: float) -> tuple[bytes, bytes]:
        """Return the lanes that are answered well and the beginning of a reply; count all else."""
        frames, tail = split(data)
        well, refused = bytearray(), bytearray()
        for frame in frames:
            lane = lane_of(frame[1]) if not isinstance(frame, BadFrame) and len(frame) == 3 else None
            if lane is None or lane >= len(self._script.replies):
                self._stranger(connection, frame)
            elif wire.frame(*frame) == self._script.replies[lane]:
                well.append(lane)
            elif (code := self._code(frame)) == Draining.code:
                refused.append(lane)
            else:
                connection.lanes.discard(lane)
                self._owner.counts.fail(code)
                if self._notes is not None:
                    self._notes.failed(lane, now, code)
                self._owner.failed(self, lane)
        if refused:
            self._move(connection, bytes(refused), now)
        return bytes(well), tail

    def _stranger(self, connection: Connection, frame: Frame) -> None:
        """Deal with what answers none of the calls: the node asks whether we live, or why it hangs up."""
        if not isinstance(frame, BadFrame) and tuple(frame) == (wire.PING, wire.NIL):
            with contextlib.suppress(Unreachable):  # where that fails, so does the next read
                connection.write(_PONG)
        else:
            self._owner.counts.fail(self._code(frame))

    def _code(self, frame: Frame) -> str:
        """Return what a frame that is no right answer counts as."""
        result = b"" if isinstance(frame, BadFrame) else frame[-1]
        if result in (wire.TIMED_OUT, wire.CLOJURE_TIMED_OUT):
            return TIMED_OUT
        try:
            error = wire.refusal(values.unpack(result))
        except ValueError:
            error = None
        if error:
            return error.code
        self._owner.counts.example = repr(tuple(frame))
        return WRONG


class Sender(Channel):
    """The senders of a pair. How long each send! took is noted, from when it was made, or was due."""

    def __init__(
        self, script: Script, worker: int | None, owner: Owner, epoll: select.epoll, notes: Notes | None = None
    ) -> None:
        super().__init__(script, worker, owner, epoll, notes)
        self.refills = True  # whether an answered call is made again
        self._began = [0.0] * len(script.calls)
        self._made = self._began

    def refill(self, lanes: bytes, now: float) -> None:
        if self.refills:
            super().refill(lanes, now)

    def make(self, lanes: bytes, now: float) -> None:
        began = self._began
        for lane in lanes:
            began[lane] = now
        super().make(lanes, now)

    def answered(self, lanes: bytes, now: float) -> None:
        counts = self._owner.counts
        counts.sent += len(lanes)
        noted, began = counts.latencies_us, self._began
        for lane in lanes:
            took = int((now - began[lane]) * 1e6)
            noted[took] = noted.get(took, 0) + 1
        self.refill(lanes, now)

    def _call_again(self, lane: int, now: float) -> bytes:
        return self._script.call_after(lane, now - self._made[lane])


class PacedSender(Sender):
    """The senders of a pair in an open loop: their lanes are free until a call is due."""

    def __init__(
        self,
        script: Script,
        worker: int | None,
        owner: Owner,
        epoll: select.epoll,
        schedule: Schedule,
        notes: Notes | None = None,
    ) -> None:
        super().__init__(script, worker, owner, epoll, notes)
        self._schedule = schedule
        self._made = [0.0] * len(script.calls)  # maybe later than it was due

    def make(self, lanes: bytes, now: float) -> None:
        self._schedule.release(self, lanes)

    def make_due(self, lanes: bytes, due: Sequence[float], now: float) -> None:
        """Make calls, each of which was due at its own time."""
        for lane, time_due in zip(lanes, due, strict=True):
            self._began[lane], self._made[lane] = time_due, now
        if self._notes is not None:
            self._notes.made_due(lanes, due)
        self._issue(lanes)

    def _leave(self) -> None:
        self._free += self._schedule.withdraw(self)
        super()._leave()
