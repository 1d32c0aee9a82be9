"""A turn that is no worker's: with counters of its own, and the clock and the luck of this machine, or others."""

from __future__ import annotations

from collections.abc import Callable

from workers.engine.loop import Turn
from workers.engine.machine import MACHINE
from workers.stats.counters import Counters


def turn_at(
    now: float, clock: Callable[[], float] = MACHINE.monotonic, luck: Callable[[], float] = MACHINE.random
) -> Turn:
    """Return one that begins at that time."""
    return Turn(now, Counters(None, clock, luck), clock)
