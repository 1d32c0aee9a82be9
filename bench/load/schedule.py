"""When the calls of an open loop are due, and the lanes that are free to make them.

A call that is due while no lane is free is made late, and none is skipped: how long it took is
counted from when it was due, so that a node which stalls is not spared the calls of that time.
"""

from __future__ import annotations

import math
from collections import deque

from bench.load.channel import PacedSender


class Schedule:
    """A steady rate, in calls a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._start = math.inf
        self._free: deque[tuple[PacedSender, int]] = deque()
        self.made = 0

    def start(self, now: float) -> None:
        """Have the first call be due now."""
        self._start = now

    def due(self, now: float) -> int:
        """Return how many calls have been due until now, from the first on."""
        return max(0, 1 + math.floor((now - self._start) * self._rate))

    def release(self, sender: PacedSender, lanes: bytes) -> None:
        """Make lanes free."""
        self._free.extend([(sender, lane) for lane in lanes])

    def withdraw(self, sender: PacedSender) -> bytes:
        """Take back the free lanes of a sender that has no connection."""
        lanes = bytes(lane for owner, lane in self._free if owner is sender)
        self._free = deque(entry for entry in self._free if entry[0] is not sender)
        return lanes

    def make(self, now: float) -> float:
        """Make the calls that are due, as far as lanes are free; return when there may be more to do."""
        count = min(self.due(now) - self.made, len(self._free))
        if count > 0:
            lanes: dict[PacedSender, bytearray] = {}
            times: dict[PacedSender, list[float]] = {}
            for number in range(self.made, self.made + count):
                sender, lane = self._free.popleft()
                lanes.setdefault(sender, bytearray()).append(lane)
                times.setdefault(sender, []).append(self._start + number / self._rate)
            self.made += count
            for sender, chosen in lanes.items():
                sender.make_due(bytes(chosen), times[sender], now)
        return self._start + self.made / self._rate if self._free else math.inf
