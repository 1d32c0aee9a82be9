"""How a client chooses the worker that gets its connection, at a node that steers: by the source port.

Such a node gives a connection to worker `(source port >> 1) % workers`. The lowest bit does
not count, since the ports that connect() hands out by itself share one parity.
"""

from __future__ import annotations

from typing import Final

FIRST_PORT: Final = 32_769
LAST_PORT: Final = 60_999
"""Where Linux takes the ports of clients from by itself."""

PORTS_TRIED: Final = 8
"""Source ports that are worth trying, since some are in use."""


def source_port(worker: int, workers: int, luck: float) -> int:
    """Return a port that steers to `worker` of `workers`; `luck` is random, from 0 to below 1."""
    # Odd ones: connect() itself prefers the even ones, so these are free.
    first, last = FIRST_PORT >> 1, (LAST_PORT - 1) >> 1
    first += (worker - first) % workers
    count = (last - first) // workers + 1
    return (first + int(luck * count) * workers) << 1 | 1
