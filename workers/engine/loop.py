"""The loop of a worker: descriptors with their handlers, times at which something is due, and its turns.

The turns are those of the core (workers/core/turn.c), which says in which order a turn writes. Turn is what Python has
to do in them.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final, Protocol

from skywalker.journal import record
from skywalker.limits import Limits
from workers.core._core import Moment
from workers.engine.machine import Machine
from workers.stats import metrics
from workers.stats.counters import Counters
from workers.stats.hands import Hand, own_hand

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLERR | select.EPOLLHUP

LAYOUT: Final = {
    "calls": metrics.CALLS.at, "routed": metrics.ROUTED.at, "wait": metrics.WAIT.at, "hand_off": metrics.HAND_OFF.at,
    "waiting": metrics.WAITING.at, "turn": metrics.TURN.at, "received": metrics.RECEIVED.at, "sent": metrics.SENT.at,
    "longest_turn": metrics.LONGEST_TURN.at, "buckets": metrics.BUCKETS, "outcomes": len(record.OUTCOMES),
}  # fmt: skip
"""In which cells the core counts what."""


class Resting(Protocol):
    """Who has had its share, and does more in a turn to come."""

    def rested(self) -> None:
        """Go on."""


class Turn(Moment):
    """The turn that is on, for all that one worker has: what is not done by the core itself."""

    __slots__ = ("clock", "counters", "hand")

    def __init__(
        self, machine: Machine, counters: Counters, hand: Hand | None = None, limits: Limits | None = None
    ) -> None:
        """`hand` is where it is written down what the worker is handing out."""
        # Now is when it began, or later: when the calls that it deals with were read, or the values in them written.
        Moment.__init__(self, None, limits or Limits(), counters.memory, LAYOUT, machine.key(), machine.beneath())
        self.clock = machine.monotonic
        self.hand = own_hand() if hand is None else hand
        self.counters = counters
        self.resting: Resting | None  # who goes on in one to come in any case, at rests_until

    def begin(self, now: float) -> None:
        """End what is due, before anything new may meet it."""
        self.core.begin(now)

    def wait(self, patient: bool = True) -> float | None:
        """Return the seconds until the next one has something to do, whatever comes; None if that depends on others.

        Without patience it does not wait, nor while somebody has more to do.
        """
        return self.core.wait() if patient else 0.0

    def go_on(self) -> None:
        """Have the one do more that has a share of its own, which is no part of the turn."""
        resting, self.resting = self.resting, None
        assert resting is not None, "its time has come"
        resting.rested()
        self.began = self.now

    def end(self) -> None:
        """Write everything out. What was met in this turn is confirmed by these very writes."""
        self.core.settle()


class Alarm:
    """Calls somebody when the time has come, unless it is put off before.

    While it is not set it refers to nobody: whoever has it, and is called by it, would else refer to itself.
    """

    __slots__ = ("_number", "_ring", "at")

    def __init__(self) -> None:
        self._number = 0
        self._ring: Callable[[], None] | None = None
        self.at: float | None = None

    def set(self, turn: Turn, at: float, ring: Callable[[], None]) -> None:
        """Call `ring` at that time and at no other."""
        self.off(turn)
        self.at, self._ring = at, ring
        self._number = turn.set_alarm(self, at)

    def off(self, turn: Turn) -> None:
        """Do not ring."""
        if self.at is not None:
            turn.drop_alarm(self._number)
            self.at = self._ring = None

    def expired(self) -> None:
        """Ring: the time has come."""
        ring = self._ring
        assert ring is not None, "it is set"
        self.at = self._ring = None
        ring()


class Handler(Protocol):
    """Is told that its descriptor is ready. Events may be stale: a read or write may still find nothing to do."""

    def ready(self, events: int) -> None:
        """Deal with the events, a mask of READ, WRITE and the kernel's error bits."""


class Loop:
    """Has handlers called when their descriptors are ready, and a worker's turns done."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._core = turn.core

    def add(self, fd: int, handler: Handler, events: int = READ) -> None:
        """Call handler.ready() whenever one of `events` holds."""
        self._core.watch(fd, handler, events)

    def change(self, fd: int, events: int) -> None:
        """Wait for other events on a descriptor that was added."""
        self._core.change(fd, events)

    def remove(self, fd: int) -> None:
        """Forget a descriptor, before it is closed."""
        self._core.forget(fd)

    def turn(self, patient: bool = True) -> int:
        """Wait until something is ready or due, deal with it, and write what came of it; return how many were ready.

        How long it waits at most, and what `patient` is, Turn.wait() says.
        """
        return self._core.turn(-1.0 if patient else 0.0)

    def turns(self) -> None:
        """Do turns, with patience, until a handler was called, or anything else of Python's."""
        self._core.turns()
