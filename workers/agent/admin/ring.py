"""The ring that the node follows, as it can be drawn: the body of /api/ring."""

from __future__ import annotations

import functools
import json
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from skywalker.members import Snapshot, arcs
from skywalker.ring import TOKENS

MAX_ARCS: Final = 4096
"""Arcs that are told. There may be more: then so many equal parts are, each its owner's who has its middle."""

_Arc = tuple[float, float, int]  # start and length as parts of the ring, and who in the list of members


@functools.lru_cache(maxsize=1)
def body(snapshot: Snapshot, here: str) -> bytes:
    """Return it as JSON, at the node of the id `here`. It is made once for each snapshot, and only if somebody asks."""
    shares = snapshot.shares()
    members = [
        {
            "id": member.id,
            "name": member.name,
            "address": str(member.address),
            "share": shares[member.id],
            "workers": member.workers,
        }
        for member in snapshot
    ]
    unproven = [{"address": str(address), "reason": reason} for address, reason in snapshot.unproven.items()]
    content = {
        "version": snapshot.version,
        "here": here,
        "members": members,
        "arcs": drawn(snapshot),
        "unproven": unproven,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def drawn(snapshot: Snapshot) -> list[_Arc]:
    """Return the arcs of all members, in the order of their starts; the last one goes on around the end.

    Neighbours of one member are one arc, and no more than MAX_ARCS are returned.
    """
    numbers = {member.id: number for number, member in enumerate(snapshot)}
    found = _merged(
        ((arc.start + TOKENS // 2) / TOKENS, arc.length / TOKENS, numbers[arc.share.node]) for arc in arcs(snapshot)
    )
    if len(found) <= MAX_ARCS:
        return found
    starts = [start for start, _, _ in found]
    part = 1 / MAX_ARCS
    # What is before the first start is the last one's, which is where index -1 leads.
    owners = (found[bisect_right(starts, (number + 0.5) * part) - 1][2] for number in range(MAX_ARCS))
    parts = _merged((number * part, part, owner) for number, owner in enumerate(owners))
    assert len(parts) <= MAX_ARCS
    return parts


def _merged(pieces: Iterable[_Arc]) -> list[_Arc]:
    found: list[_Arc] = []
    for start, length, owner in pieces:
        if found and found[-1][2] == owner:
            first, before, _ = found[-1]
            found[-1] = first, before + length, owner
        else:
            found.append((start, length, owner))
    if len(found) > 1 and found[0][2] == found[-1][2]:
        (_, length, owner), (start, before, _) = found.pop(0), found.pop()
        found.append((start, before + length, owner))
    return found
