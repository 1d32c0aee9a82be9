"""How far the counting of topics is."""

from __future__ import annotations

import time
from typing import Final, Self

from skywalker.cli.status import Status

PAUSE_S: Final = 0.2
"""Seconds between two drawings; what is done before the first needs none."""


class Counting:
    """Draws while a `with` block lasts, and leaves nothing behind."""

    def __init__(self, size: int, unit: str) -> None:
        """Of `size` units."""
        self._size = size
        self._unit = unit
        self._status = Status()
        self._started = self._drawn = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._status.clear()

    def tell(self, done: int) -> None:
        """So many units are done."""
        now = time.monotonic()
        if not self._status.live or now - self._drawn < PAUSE_S:
            return
        self._drawn = now
        rate = done / (now - self._started)
        left = (self._size - done) / rate
        self._status.draw(f"  {done / self._size:4.0%}  {done:,} {self._unit}  {rate:,.0f}/s  {left:,.0f} s left")
