"""How many wait on a topic, and since when."""

from __future__ import annotations

from typing import NamedTuple


class Census(NamedTuple):
    """Who is at a topic; `takers` are by group, those of groups that are not named under nil.

    `oldest` is the `since` of the longest waiting of them, None if nobody waits.
    """

    receivers: int
    takers: dict[bytes, int]
    senders: int
    subscribers: int
    oldest: float | None
