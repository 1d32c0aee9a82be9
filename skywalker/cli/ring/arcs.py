"""The ring as it is drawn: one arc for each token, and the same cut into equal columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from skywalker.members import Snapshot
from skywalker.ring import TOKENS

LOWEST: Final = -TOKENS // 2
"""The lowest of all tokens, where a drawing begins."""


class Arc(NamedTuple):
    """What one token owns: all from `start`, without it, for `length` around the ring."""

    start: int
    length: int
    node: str  # the owner's id


def arcs(snapshot: Snapshot) -> list[Arc]:
    """Return the arcs of a ring in the order of their starts; together they are the whole of it."""
    tokens = sorted({token for member in snapshot for token in member.tokens})
    return [
        # The end still belongs to this token: equal counts as not less.
        Arc(start, (end - start) % TOKENS or TOKENS, snapshot.ring.owner(end).node)
        for start, end in zip(tokens, [*tokens[1:], tokens[0]], strict=True)
    ]


def columns(ring: Sequence[Arc], count: int) -> list[str]:
    """Cut a ring into `count` equal parts, from the lowest token up; return who owns the most of each."""
    owned: list[Counter[str]] = [Counter() for _ in range(count)]
    for arc in ring:
        # In units of which a column has TOKENS, so that no part is rounded away.
        at = (arc.start - LOWEST) * count
        end = at + arc.length * count
        while at < end:
            column, into = divmod(at, TOKENS)
            part = min(end - at, TOKENS - into)
            owned[column % count][arc.node] += part
            at += part
    return [owners.most_common(1)[0][0] for owners in owned]
