"""The rate: connections kept full, each answered call made again at once.

What is read at a time is dealt with at a time: one comparison of all its replies with the
bytes they must be, one write of all the calls that they set free. Nothing is decoded, yet
every reply is checked. After the window no new send! is made, and those in flight must all be
answered and their values received: then every value sent was received once.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import Final

from bench.connections import Connection
from bench.errors import Stalled, Unreachable, WrongReply
from bench.lanes import Script
from bench.plan import Tally, Window

READ_BYTES: Final = 256 * 1024

LOOK_S: Final = 0.02
"""Seconds between looks at whether the last calls are answered."""


class Stream:
    """One connection that makes the calls of its script over and over."""

    __slots__ = ("_epoll", "_lane_at", "_script", "_size", "_socket", "_tail", "_unsent", "answered", "made", "refills")

    def __init__(self, sock: socket.socket, script: Script, epoll: select.epoll) -> None:
        self.made = 0  # calls
        self.answered = 0
        self.refills = True  # whether an answered call is made again
        self._script = script
        self._size = script.reply_bytes
        self._lane_at = script.lane_at
        self._tail = b""  # the beginning of a reply
        self._unsent = b""
        self._epoll = epoll
        self._socket = sock
        sock.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._socket.fileno()

    def open(self) -> None:
        """Make every call of the script once."""
        self._epoll.register(self._socket, select.EPOLLIN)
        self.made += len(self._script.calls)
        self._write(b"".join(self._script.calls))

    def ready(self) -> None:
        """Read replies, compare them, and make the calls again that they answered.

        Raises WrongReply or Unreachable.
        """
        if self._unsent:
            self._write(b"")
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if not data:
            raise Unreachable("the node closed a connection")
        data = self._tail + data
        end = len(data) - len(data) % self._size
        data, self._tail = data[:end], data[end:]
        lanes = data[self._lane_at :: self._size]
        replies, calls = self._script.replies, self._script.calls
        try:
            expected = b"".join([replies[lane] for lane in lanes])
        except IndexError:
            expected = b""
        if data != expected:
            raise WrongReply(self._wrong(data))
        self.answered += len(lanes)
        if self.refills and lanes:
            self.made += len(lanes)
            self._write(b"".join([calls[lane] for lane in lanes]))

    def _write(self, data: bytes) -> None:
        had_unsent = bool(self._unsent)
        data = self._unsent + data
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if sent < len(data) or had_unsent:
            self._unsent = data[sent:]
            self._epoll.modify(self._socket, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def _wrong(self, data: bytes) -> str:
        data += self._tail
        while True:
            end = 2 + int.from_bytes(data[:2], "big")
            reply, data = data[:end], data[end:]
            if reply not in self._script.replies:
                return f"no correct node gives this reply: {reply!r}"

    def unfinished(self) -> str:
        """Return what was read that is no whole reply, as words to end a sentence; empty if nothing was."""
        return f"; last came {self._tail!r}" if self._tail else ""


def run(receivers: Sequence[Connection], senders: Sequence[Connection], window: Window, patience_s: float) -> Tally:
    """Keep every lane busy until the window ends, and return what was counted.

    Raises BenchError if anything is lost, doubled, wrong, or not answered within `patience_s` after the window.
    """
    with select.epoll() as epoll:
        return ClosedLoop(epoll, receivers, senders).run(window, patience_s)


class ClosedLoop:
    """The streams of all pairs of one generator, in one thread."""

    def __init__(self, epoll: select.epoll, receivers: Sequence[Connection], senders: Sequence[Connection]) -> None:
        self._poll = epoll.poll
        self._receivers = [Stream(*connection, epoll) for connection in receivers]
        self._senders = [Stream(*connection, epoll) for connection in senders]
        self._streams = self._receivers + self._senders
        self._ready = {stream.fileno(): stream.ready for stream in self._streams}

    def run(self, window: Window, patience_s: float) -> Tally:
        """See the function of the same name."""
        for stream in self._streams:
            stream.open()
        self._turn_until(window.start)
        began, cpu, sent, received = time.monotonic(), time.process_time(), self._sent(), self._received()
        self._turn_until(window.stop)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        sent, received = self._sent() - sent, self._received() - received
        self._finish(patience_s)
        return Tally(seconds, sent, received, self._sent(), self._received(), cpu)

    def _turn_until(self, deadline: float) -> None:
        ready, poll = self._ready, self._poll
        while (now := time.monotonic()) < deadline:
            for fd, _ in poll(deadline - now):
                ready[fd]()

    def _finish(self, patience_s: float) -> None:
        """Have every send! that was made answered, and its value received; make no new ones."""
        for sender in self._senders:
            sender.refills = False
        deadline = time.monotonic() + patience_s
        made = sum(sender.made for sender in self._senders)
        while not self._sent() == self._received() == made:
            if time.monotonic() >= deadline:
                heard = next(filter(None, (stream.unfinished() for stream in self._streams)), "")
                raise Stalled(
                    f"{patience_s:g} s after the last of {made} send! calls {self._sent()} were answered "
                    f"and {self._received()} values received{heard}"
                )
            self._turn_until(min(deadline, time.monotonic() + LOOK_S))
            self._expect_at_most(made)
        self._turn_until(time.monotonic() + LOOK_S)  # one that is too many may just be on its way
        self._expect_at_most(made)

    def _expect_at_most(self, made: int) -> None:
        if self._received() > made:
            raise WrongReply(f"{made} values were sent and {self._received()} received")

    def _sent(self) -> int:
        return sum(sender.answered for sender in self._senders)

    def _received(self) -> int:
        return sum(receiver.answered for receiver in self._receivers)
