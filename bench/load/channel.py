"""One connection of a load: its calls in flight, made again and again, whatever is answered.

What is read at a time is compared at a time with the bytes it should be, as bench.closed_loop
does. Only where it differs is it taken apart, and what failed is counted by its code.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from bench.load.contact import Contact
from bench.load.counts import LOST, TIMED_OUT, WRONG, Counts
from bench.load.scripts import LANE_AT, Script, lane_of
from bench.replies import READ_BYTES, lanes_of
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

    def lost(self, channel: Channel) -> None:
        """The connection is gone; the channel is closed until it is opened with another."""

    def failed(self, channel: Channel, lane: int) -> None:
        """A call failed. It is not made again before the channel is told to."""


class Channel:
    """The receivers of a pair: each call is made again as soon as it is answered."""

    def __init__(
        self, script: Script, worker: int | None, owner: Owner, epoll: select.epoll, notes: Notes | None = None
    ) -> None:
        self.worker = worker  # where it wants to be
        self.in_flight = 0
        self._notes = notes
        self.epoch = 0  # how many connections it has had
        self._script = script
        self._size = len(script.replies[0])
        self._head = script.replies[0][:2]
        self._owner = owner
        self._epoll = epoll
        self._socket: socket.socket | None = None
        self._tail = b""  # the beginning of a reply
        self._unsent = b""
        self._placed = False  # whether it is known which worker it came to
        self._owned = b""  # the lanes whose topics that worker owns

    def open(self, contact: Contact, ring: Ring[int] | None) -> int:
        """Go on with a new connection and make every call; return its descriptor."""
        self._socket = contact.sock
        self._tail = self._unsent = b""
        self.epoch += 1
        self._owned = self._script.owned(ring, contact.worker)
        self._placed = ring is not None and contact.worker is not None
        self._epoll.register(contact.sock, select.EPOLLIN)
        self.begin()
        return contact.sock.fileno()

    def begin(self) -> None:
        """Make the first calls of a connection: all of them."""
        self.make(bytes(range(len(self._script.calls))), time.monotonic())

    def make(self, lanes: bytes, now: float) -> None:
        """Make the calls of some lanes."""
        if self._notes is not None:
            self._notes.made(lanes, now)
        self._call(lanes)

    def _call(self, lanes: bytes) -> None:
        calls = self._script.calls
        self.in_flight += len(lanes)
        self._write(b"".join([calls[lane] for lane in lanes]))

    def ready(self) -> None:
        """Read replies, and deal with them."""
        if self._unsent:
            self._write(b"")
        if self._socket is None:
            return
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        now = time.monotonic()
        data = self._tail + data
        size = self._size
        end = len(data) - len(data) % size
        whole, tail = data[:end], data[end:]
        lanes = lanes_of(whole, size, LANE_AT, self._script.replies)
        if lanes is None or (tail and tail[:2] != self._head[: len(tail)]):
            lanes, tail = self._sift(data)
        self._tail = tail
        if lanes:
            self.in_flight -= len(lanes)
            if self._notes is not None:
                self._notes.answered(lanes, now, self._owned if self._placed else lanes)
            if self._placed:
                self._owner.counts.placed += len(lanes)
                self._owner.counts.forwarded += len(lanes.translate(None, self._owned))
            self.answered(lanes, now)

    def retry(self, lane: int, now: float) -> None:
        """Make a call that failed once more."""
        self.make(bytes((lane,)), now)

    def answered(self, lanes: bytes, now: float) -> None:
        """Take note of calls answered well, and make them again."""
        self._owner.counts.received += len(lanes)
        self.make(lanes, now)

    def close(self) -> None:
        """Hang up."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _write(self, data: bytes) -> None:
        if self._socket is None:
            return
        had_unsent = bool(self._unsent)
        data = self._unsent + data
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lose()
            return
        if sent < len(data) or had_unsent:
            self._unsent = data[sent:]
            self._epoll.modify(self._socket, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def _lose(self) -> None:
        self.close()
        self._owner.counts.fail(LOST, self.in_flight)
        self.in_flight = 0
        self._owner.lost(self)

    def _sift(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the lanes that are answered well and the beginning of a reply; count all else."""
        frames, tail = split(data)
        well = bytearray()
        for frame in frames:
            lane = lane_of(frame[1]) if not isinstance(frame, BadFrame) and len(frame) == 3 else None
            if lane is None or lane >= len(self._script.replies):
                self._stranger(frame)
            elif wire.frame(*frame) == self._script.replies[lane]:
                well.append(lane)
            else:
                self.in_flight -= 1
                code = self._count(frame)
                if self._notes is not None:
                    self._notes.failed(lane, time.monotonic(), code)
                self._owner.failed(self, lane)
        return bytes(well), tail

    def _stranger(self, frame: Frame) -> None:
        """Deal with what answers none of the calls: the node asks whether we live, or why it hangs up."""
        if not isinstance(frame, BadFrame) and tuple(frame) == (wire.PING, wire.NIL):
            self._write(_PONG)
        else:
            self._count(frame)

    def _count(self, frame: Frame) -> str:
        """Count a frame that is no right answer; return the code it counts as."""
        counts = self._owner.counts
        result = b"" if isinstance(frame, BadFrame) else frame[-1]
        if result in (wire.TIMED_OUT, wire.CLOJURE_TIMED_OUT):
            counts.fail(TIMED_OUT)
            return TIMED_OUT
        try:
            error = wire.refusal(values.unpack(result))
        except ValueError:
            error = None
        code = error.code if error else WRONG
        counts.fail(code)
        if not error:
            counts.example = repr(tuple(frame))
        return code


class Sender(Channel):
    """The senders of a pair. How long each send! took is noted, from when it was made, or was due."""

    def __init__(
        self, script: Script, worker: int | None, owner: Owner, epoll: select.epoll, notes: Notes | None = None
    ) -> None:
        super().__init__(script, worker, owner, epoll, notes)
        self.refills = True  # whether an answered call is made again
        self._began = [0.0] * len(script.calls)

    def begin(self) -> None:
        if self.refills:
            super().begin()

    def retry(self, lane: int, now: float) -> None:
        if self.refills:
            super().retry(lane, now)

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
        if self.refills:
            self.make(lanes, now)


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
        self.refills = False
        self._schedule = schedule

    def begin(self) -> None:
        self._schedule.release(self, bytes(range(len(self._script.calls))))

    def retry(self, lane: int, now: float) -> None:
        self._schedule.release(self, bytes((lane,)))

    def make_due(self, lanes: bytes, due: Sequence[float]) -> None:
        """Make calls, each of which was due at its own time."""
        began = self._began
        for lane, time_due in zip(lanes, due, strict=True):
            began[lane] = time_due
        if self._notes is not None:
            self._notes.made_due(lanes, due)
        self._call(lanes)

    def answered(self, lanes: bytes, now: float) -> None:
        super().answered(lanes, now)
        self._schedule.release(self, lanes)
