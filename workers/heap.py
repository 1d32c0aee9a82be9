"""Gives memory that waiting calls took back to the system, once they are gone.

The C library keeps what was freed below anything that is still in use: a worker that once held
150 MB of values went on taking 150 MB for good.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from workers.alarm import Alarm

if TYPE_CHECKING:
    from workers.router import Router

LOOK_S: Final = 5.0
"""Seconds between looks at whether there is anything to give back."""

WORTHWHILE: Final = 4 * 1024 * 1024
"""Bytes by which the calls that wait have become less. To give them back takes milliseconds."""


def _malloc_trim() -> Callable[[int], object]:
    """Return the C library's malloc_trim(), or what does nothing where it has none."""
    try:
        trim: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return lambda pad: None
    return trim


class Heap:
    """Looks at what a worker's calls take, now and then."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._malloc_trim = _malloc_trim()
        self._alarm = Alarm()

    def look(self) -> None:
        """Give memory back if there is much, and look again later."""
        router = self._router
        if router.most_bytes_held - router.bytes_held >= WORTHWHILE:
            router.most_bytes_held = router.bytes_held
            self.trim()
        self._alarm.set(router.turn, router.turn.now + LOOK_S, self.look)

    def trim(self) -> None:
        """Give back what can be."""
        self._malloc_trim(0)
