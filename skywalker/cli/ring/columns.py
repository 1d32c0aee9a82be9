"""The ring as it is drawn: cut into equal columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from skywalker.members import Arc
from skywalker.ring import TOKENS

LOWEST: Final = -TOKENS // 2
"""The lowest of all tokens, where a drawing begins."""


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
            owned[column % count][arc.owner.node] += part
            at += part
    return [owners.most_common(1)[0][0] for owners in owned]
