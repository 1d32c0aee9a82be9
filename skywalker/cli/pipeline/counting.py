"""How far the counting of topics is: a line on standard error, drawn over itself, where that is a terminal."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Final, Self

from skywalker.cli import terminal

PAUSE_S: Final = 0.2
"""Seconds between two drawings; what is done before the first needs none."""


class Counting:
    """Draws while a `with` block lasts, and leaves nothing behind."""

    def __init__(self, size: int, unit: str) -> None:
        """Of `size` units."""
        self._size = size
        self._unit = unit
        self._is_live = os.isatty(terminal.STDERR) and os.environ.get("TERM") != "dumb"
        self._started = self._drawn = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn > self._started:
            self._write("\r\x1b[K")

    def tell(self, done: int) -> None:
        """So many units are done."""
        now = time.monotonic()
        if not self._is_live or now - self._drawn < PAUSE_S:
            return
        self._drawn = now
        rate = done / (now - self._started)
        left = (self._size - done) / rate
        line = f"  {done / self._size:4.0%}  {done:,} {self._unit}  {rate:,.0f}/s  {left:,.0f} s left"
        self._write(f"\r{line[: terminal.width() - 1]}\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone, the plan is not
            os.write(terminal.STDERR, text.encode())
