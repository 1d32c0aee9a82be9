"""The rate: connections kept full, each answered call made again at once.

What is read at a time is dealt with at a time: one comparison of all its replies with the
bytes they must be, one write of all the calls that they set free. Nothing is decoded, yet
every reply is checked. After the window no new send! is made, and those in flight must all be
answered and their values received: then every value sent was received once.
"""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from typing import Final

from bench.connections import Connection
from bench.errors import Stalled, WrongReply
from bench.lanes import Script
from bench.line import Line
from bench.plan import Tally, Window
from bench.replies import READ_BYTES, lanes_of
from bench.secure import Link

LOOK_S: Final = 0.02
"""Seconds between looks at whether the last calls are answered."""


class Stream(Line):
    """One connection that makes the calls of its script over and over."""

    __slots__ = (
        *("_held", "_lane_at", "_ping", "_script", "_size", "_tail"),
        *("answered", "in_step", "made", "partner", "refills"),
    )

    def __init__(self, sock: Link, script: Script, epoll: select.epoll) -> None:
        super().__init__(sock, epoll)
        self.made = 0  # calls
        self.answered = 0
        self.refills = True  # whether an answered call is made again
        self.partner: Stream | None = None  # the other side of the pair, if it must be answered before that, too
        self._held = b""  # lanes that wait for the partner
        self.in_step = script.in_step
        self._script = script
        self._size = script.reply_bytes
        self._lane_at = script.lane_at
        self._ping = script.ping
        self._tail = b""  # the beginning of a reply

    def open(self) -> None:
        """Make every call of the script once."""
        self.made += len(self._script.calls)
        self.write(b"" if self._script.answers else b"".join(self._script.calls))

    def ready(self) -> None:
        """Read replies, compare them, and make the calls again that they answered.

        Raises WrongReply or Unreachable.
        """
        data = self.read(READ_BYTES)
        if data is None:
            return
        data = self._tail + data
        if self._ping and self._ping in data:
            data = data.replace(self._ping, b"")
            self.write(self._script.pong)
        end = len(data) - len(data) % self._size
        data, self._tail = data[:end], data[end:]
        lanes = lanes_of(data, self._size, self._lane_at, self._script.replies)
        if lanes is None:
            raise WrongReply(self._wrong(data))
        self.answered += len(lanes)
        if self.refills and lanes:
            if self.partner is None:
                self._repeat(lanes)
            else:
                self._held += lanes
        if self.partner is not None:
            self.repeat_in_step()
            self.partner.repeat_in_step()

    def repeat_in_step(self) -> None:
        """Make the calls again that are answered, once the partner's are."""
        if self._held and self.refills and self.partner is not None and self.partner.answered >= self.answered:
            lanes, self._held = self._held, b""
            self._repeat(lanes)

    def _repeat(self, lanes: bytes) -> None:
        calls = self._script.calls
        self.made += len(lanes)
        self.write(b"".join([calls[lane] for lane in lanes]))

    def _wrong(self, data: bytes) -> str:
        data += self._tail
        while True:
            end = 2 + int.from_bytes(data[:2], "big")
            reply, data = data[:end], data[end:]
            if reply not in self._script.replies:
                return f"no correct node gives this reply: {reply[:200]!r}"

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
        for receiver, sender in zip(self._receivers, self._senders, strict=True):
            if sender.in_step:
                receiver.partner, sender.partner = sender, receiver
        self._meet = all(script.meets for _, script in receivers)
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
        made = due = sum(sender.made for sender in self._senders)
        if not self._meet:
            for receiver in self._receivers:
                receiver.refills = False
            due = sum(receiver.made for receiver in self._receivers)
        deadline = time.monotonic() + patience_s
        while (self._sent(), self._received()) != (made, due):
            if time.monotonic() >= deadline:
                heard = next(filter(None, (stream.unfinished() for stream in self._streams)), "")
                raise Stalled(
                    f"{patience_s:g} s after the last of {made} send! calls {self._sent()} were answered "
                    f"and {self._received()} values received{heard}"
                )
            self._turn_until(min(deadline, time.monotonic() + LOOK_S))
            self._expect_at_most(due)
        self._turn_until(time.monotonic() + LOOK_S)  # one that is too many may just be on its way
        self._expect_at_most(due)

    def _expect_at_most(self, due: int) -> None:
        if self._received() > due:
            raise WrongReply(f"{due} values were sent and {self._received()} received")

    def _sent(self) -> int:
        return sum(sender.answered for sender in self._senders)

    def _received(self) -> int:
        return sum(receiver.answered for receiver in self._receivers)
