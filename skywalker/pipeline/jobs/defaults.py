"""What jobs take where nothing else is said, and what calls can be told apart by: known without Spark."""

from __future__ import annotations

from typing import Final

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "topic": ("token",),
    "minute": ("time",),
    "node": ("node",),
    "worker": ("node", "worker"),
    "method": ("method",),
    "outcome": ("outcome",),
    "route": ("route",),
    "door": ("door",),
    "ring": ("ring",),
    "source": ("source",),
}
"""What calls can be told apart by, and the columns that take."""

NODES: Final = ("node", "recv_node", "send_node")
"""The columns of tables that have ids of nodes, in whose place people are shown names."""

MINUTE_S: Final = 60

HOP_COST: Final = 3.0
"""CPU time that passing one call on takes, in calls that are not passed on: what `python -m bench.scaling` shows."""

OVERLAP_US: Final = 1000
"""Clocks of nodes differ: what was there together for less may have been one after the other."""

PER_CORE: Final = 100_000.0
"""Calls a second that a core answers, one at a time of each of many connections, in docs/performance.md."""
