"""Gives memory that waiting calls took back to the system, once they are gone.

The C library keeps what was freed below anything that is still in use: a worker that once held
150 MB of values went on taking 150 MB for good.

What refers to itself is looked for, too. There should be nothing: what ends here is unlinked. But a worker
may live for months, and its collector looks through nothing by itself as long as as much ends as begins.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Final

from workers.doors.clients import Clients
from workers.engine.loop import Alarm, Turn

LOOK_S: Final = 5.0
"""Seconds between looks at whether there is anything to give back."""

WORTHWHILE: Final = 4 * 1024 * 1024
"""Bytes by which the calls that wait have become less. To give them back takes milliseconds."""

COLLECT_S: Final = 3600.0
"""Seconds between searches through all objects, at least."""

KEPT: Final = 64 * 1024 * 1024
"""Bytes that are free at the end of the heap, up to which the C library keeps them. By itself it gives back all but
128 KiB, as soon as a turn has written what was said to many, and the next turn has every page of it made anew."""

MAX_IN_HEAP: Final = 32 * 1024 * 1024
"""Bytes of a piece of memory that is a mapping of its own, and given back at once when it is freed; the most that the C
library allows. It is said because with KEPT it does not adapt to what is freed any more, and stays at 128 KiB."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3

MANY_CONNECTIONS: Final = 4_000
MANY_BYTES: Final = 4 * 1024 * 1024
"""Of calls that wait. With fewer, a search takes some ten milliseconds; with so many, others might notice."""


def _of_the_c_library(name: str) -> Callable[..., object]:
    """Return that function of it, or what does nothing where it has none."""
    try:
        function: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return lambda *arguments: None
    return function


def keep_some() -> None:
    """Have the C library keep memory for the next turn, where it can be told."""
    mallopt = _of_the_c_library("mallopt")
    mallopt(_M_TRIM_THRESHOLD, KEPT)
    mallopt(_M_MMAP_THRESHOLD, MAX_IN_HEAP)


class Heap:
    """Looks at what a worker's calls take, now and then."""

    def __init__(self, turn: Turn, clients: Clients) -> None:
        self._turn = turn
        self._clients = clients
        self._malloc_trim = _of_the_c_library("malloc_trim")
        self._alarm = Alarm()
        self._collect_at = turn.now + COLLECT_S

    def look(self) -> None:
        """Give memory back if there is much, search if that is due and there is little, and look again later."""
        turn = self._turn
        if turn.core.freed >= WORTHWHILE:
            turn.core.trimmed()
            self.trim()
        if turn.now >= self._collect_at and self._is_small():
            self._collect_at = turn.now + COLLECT_S
            gc.collect()
        self._alarm.set(turn, turn.now + LOOK_S, self.look)

    def _is_small(self) -> bool:
        return len(self._clients) < MANY_CONNECTIONS and self._turn.core.held()[1] < MANY_BYTES

    def trim(self) -> None:
        """Give back what can be."""
        self._malloc_trim(0)
