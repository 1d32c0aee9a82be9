"""A worker of another node that comes to make a link, as it says of itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from skywalker.members import Place
from workers.calls.own_node import VERSION


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


def introduced(name: str, options: Mapping[str, Any], *, may_answer: bool) -> tuple[Newcomer, Place]:
    """Return who one is by the options of a :peer, and whom it wants. Raises ValueError if it does not say so.

    It is asked over the same link only if it `may_answer` for a node.
    """
    match options:
        case {"version": int(version)} if version != VERSION:
            raise ValueError(f"nodes speak version {VERSION} here, not {version}")
        case {"from": str(whose), "by": int(by), "node": str(wanted), "worker": int(worker), "version": int()}:
            pass
        case _:
            raise ValueError("the options of :peer are from, by, node, worker and version")
    newcomer = Newcomer(
        name,
        Place(whose, by),
        str(options.get("life", "")),
        options.get("waits") is True,
        options.get("replaced") is True,
        options.get("both") is True and may_answer,
        seconds_of(options.get("age")),
        seconds_of(options.get("round_trip")),
    )
    return newcomer, Place(wanted, worker)
