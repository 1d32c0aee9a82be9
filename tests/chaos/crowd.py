"""A crowd of clients on one selector loop, each of them making random calls, and a note of what became of every call.

A client knows no manners: it pipelines, cancels, walks away in the middle of anything, and comes back. What it does is
drawn from one seeded generator; when it happens is up to the machine, so a seed repeats the mixture, not the moment.
"""

from __future__ import annotations

import heapq
import itertools
import random
import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.client import Call, Client, Connection, Dial

BUSY_TOPICS: Final = 12
QUIET_TOPICS: Final = 200
TIMEOUTS_MS: Final = (0, 10, 50, 200, 500, 1500)
CALLS_AT_A_TIME: Final = 10
BURSTS: Final = (1, 1, 2, 4)
"""Calls that a client makes at once, all of one kind on one topic."""

PAUSE_S: Final = 0.12
"""Mean pause of a client between two acts: what a crowd of 80 then asks for is about half of what two cores can do."""


@dataclass
class Crowd:
    """All clients. `run()` has them act, `finish()` waits for the answers to what they have asked."""

    dial: Dial
    random: random.Random
    calls: list[Call] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)  # what no server may do, whatever happens to it
    slowest_turn_s: float = 0.0  # of this loop: by so much what it notes may be late
    acting: bool = True

    def __post_init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = itertools.count()
        self.clients: list[Client] = []

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Have `act` called at that time."""
        heapq.heappush(self._timers, (when, next(self._ties), act))

    def run(self, seconds: float) -> None:
        """Have the clients act for so long."""
        for client in self.clients:
            client.connect()
            self.at(time.monotonic() + self.random.expovariate(1 / PAUSE_S), client.act)
        self.run_on(seconds)

    def run_on(self, seconds: float) -> None:
        """Have them go on for so long."""
        self._loop(time.monotonic() + seconds, lambda: False)

    def finish(self, seconds: float) -> None:
        """Let nobody begin anything; wait until all is answered, or that long, and close."""
        self.acting = False
        self._loop(time.monotonic() + seconds, lambda: not any(client.open for client in self.clients))
        for client in self.clients:
            client.lose(by_us=True, outcome="open")
        self.selector.close()

    def _loop(self, until: float, done: Callable[[], bool]) -> None:
        while time.monotonic() < until and not done():
            due = min(until, self._timers[0][0] if self._timers else until)
            ready = self.selector.select(max(0.0, due - time.monotonic()))
            began = min(due, time.monotonic())  # the machine may have stood still while we slept
            for key, _ in ready:
                key.data()
            while self._timers and self._timers[0][0] <= time.monotonic():
                heapq.heappop(self._timers)[2]()
            self.slowest_turn_s = max(self.slowest_turn_s, time.monotonic() - began)


class Guest(Client):
    """A client without manners."""

    timeouts_ms: Sequence[int] = TIMEOUTS_MS

    def act(self) -> None:
        crowd, dice = self.crowd, self.crowd.random
        if not crowd.acting:
            return
        crowd.at(time.monotonic() + dice.expovariate(1 / PAUSE_S), self.act)
        if not self.connected:
            self.connect()
        elif self.leaving:
            if not self.open:
                self.lose(by_us=True)
        elif dice.random() < 0.01:
            self.lose(by_us=True, reset=dice.random() < 0.7)
        elif dice.random() < 0.06 and (open_calls := [call for call in self.open.values() if call.cancelled is None]):
            self.cancel(dice.choice(open_calls))
        elif len(self.open) < CALLS_AT_A_TIME:
            busy = dice.random() < 0.7
            topic = f"busy-{dice.randrange(BUSY_TOPICS)}" if busy else f"quiet-{dice.randrange(QUIET_TOPICS)}"
            kind = dice.choices(("send", "recv", "take"), (5, 3, 3))[0]
            for _ in range(dice.choice(BURSTS)):
                self.call(kind, topic, dice.choice(self.timeouts_ms) / 1000, dice.choice("ab"))
