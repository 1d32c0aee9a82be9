"""A worker of another node that comes to make a link, as it says of itself."""

from __future__ import annotations

import math
from typing import NamedTuple

from skywalker.members import Place


class Newcomer(NamedTuple):
    """One of them."""

    name: str
    """By which the log knows it."""
    place: Place
    life: str
    """A successor in the same place says another one."""
    waits: bool
    """Whether it is new, and hears no client before we have said what we subscribe to."""
    replaced: bool
    """Whether it has a successor, which owns what it owned."""
    both_ways: bool
    """Whether it can be asked over the same link; if not, it only asks us."""
    age_s: float
    round_trip_s: float


def seconds_of(told: object) -> float:
    """Return what another node tells as a number of seconds; 0 if it is none."""
    return float(told) if isinstance(told, float | int) and 0 <= told < math.inf else 0.0
