"""A turn that is no worker's: with counters of its own, and the clock and the luck of this machine, or others."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

from workers.engine.loop import Turn
from workers.engine.machine import MACHINE
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


def turn_at(
    now: float, clock: Callable[[], float] = MACHINE.monotonic, luck: Callable[[], float] = MACHINE.random
) -> Turn:
    """Return one that begins at that time."""
    return Turn(now, Counters(None, clock, luck), clock, _hand())
