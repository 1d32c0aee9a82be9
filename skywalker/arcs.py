"""The arcs of a cluster's ring: one for each token."""

from __future__ import annotations

from typing import NamedTuple

from skywalker.members import Place, Snapshot
from skywalker.ring import TOKENS


class Arc(NamedTuple):
    """What one token owns: all from `start`, without it, for `length` around the ring."""

    start: int
    length: int
    owner: Place


def arcs(snapshot: Snapshot) -> list[Arc]:
    """Return the arcs of a ring in the order of their starts; together they are the whole of it."""
    tokens = sorted({token for member in snapshot for token in member.tokens})
    return [
        # The end still belongs to this token: equal counts as not less.
        Arc(start, (end - start) % TOKENS or TOKENS, snapshot.ring.owner(end))
        for start, end in zip(tokens, [*tokens[1:], tokens[0]], strict=True)
    ]
