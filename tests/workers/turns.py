"""A turn that is no worker's: with counters of its own, and the clock and the luck of this machine, or others."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from skywalker.limits import Limits
from workers.engine.loop import Turn
from workers.engine.machine import MACHINE, Machine
from workers.stats.counters import Counters
from workers.stats.hands import Hand, Hands

_HANDS: Final = Hands(16)
"""Of all workers of a test, which so find what each was handing out."""

_parts = itertools.count()


def _hand() -> Hand:
    part = next(_parts) % 16
    _HANDS.begin(part)
    return _HANDS.hand(part)


def life() -> bytes:
    """Return the life of another worker, which has handed out nothing."""
    return _hand().life


class Alone(Machine):
    """Has no descriptors."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.monotonic = self.clock = clock

    def beneath(self) -> Any:
        return self

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return []


def turn_of(machine: Machine, luck: Callable[[], float] = MACHINE.random, limits: Limits | None = None) -> Turn:
    """Return one on a machine."""
    return Turn(machine, Counters(None, machine.monotonic, luck), _hand(), limits)


def turn_at(
    now: float, clock: Callable[[], float] = MACHINE.monotonic, luck: Callable[[], float] = MACHINE.random
) -> Turn:
    """Return one that begins at that time."""
    turn = turn_of(Alone(clock), luck)
    turn.now = turn.began = now
    return turn
