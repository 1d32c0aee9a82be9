"""When calls are made that are not made again at once: at a steady rate, in step with the other side, or in turn."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence

from bench.errors import Stalled, WrongReply
from bench.load.channel import Channel


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
        """See Pace."""
        self._free.extend([(channel, lane) for lane in lanes])

    def withdraw(self, channel: Channel) -> bytes:
        """See Pace."""
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
        """See Pace."""
        self._held[channel] = self._held.get(channel, b"") + lanes
        least = min(side.answered for side in self.sides)
        for side in self.sides:
            if side in self._held and side.answered <= least and side.refills:
                side.make(self._held.pop(side), now)

    def withdraw(self, channel: Channel) -> bytes:
        """See Pace."""
        return self._held.pop(channel, b"")


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
