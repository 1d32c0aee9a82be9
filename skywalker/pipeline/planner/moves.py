"""What changes its owner when a node comes or goes: all that it owns, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skywalker.pipeline.planner.balance import Balance
from skywalker.pipeline.planner.ring import TokenRing


@dataclass(frozen=True, slots=True)
class Move:
    """One node comes or goes."""

    node: int
    part: float  # of all topics, that move
    calls: float | None  # of all calls, that move; None if no calls were given
    others: int  # nodes that they come from, or go to
    most: float  # of all topics, those that one of these nodes loses, or gets
    afterwards: float  # what the busiest node has then, of a fair share


def move(smaller: TokenRing, bigger: TokenRing, node: int, calls: NDArray[np.float64] | None, comes: bool) -> Move:
    """Return what moves when `node`, which the bigger ring has and the smaller one has not, comes or else goes.

    `calls` are those of each arc of the bigger ring.
    """
    its = bigger.owners == node
    parts = bigger.parts()
    # What the node owns above one of its tokens belongs, without it, to who owns that token's own place.
    others = np.bincount(smaller.owner(bigger.tokens[its]), weights=parts[its])
    return Move(
        node=node,
        part=float(parts[its].sum()),
        calls=None if calls is None else float(calls[its].sum() / calls.sum()),
        others=int(np.count_nonzero(others)),
        most=float(others.max()),
        afterwards=Balance.of(shares(bigger if comes else smaller)).busiest,
    )


def shares(ring: TokenRing) -> NDArray[np.float64]:
    """Return which part of the ring each of its nodes owns, in the order of their numbers."""
    owned: NDArray[np.float64] = np.bincount(ring.owners, weights=ring.parts()).astype(np.float64)
    return owned[np.unique(ring.owners)]
