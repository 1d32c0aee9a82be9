"""One line on standard error about work that takes a while, drawn over itself where that is a terminal."""

from __future__ import annotations

import contextlib
import os

from skywalker.cli import terminal


class Status:
    """The line; nothing is drawn where it is not `live`."""

    def __init__(self) -> None:
        self.live = os.isatty(terminal.STDERR) and os.environ.get("TERM") != "dumb"
        self._drawn = False

    def draw(self, text: str) -> None:
        """Show `text`, as far as the terminal is wide, in place of what was there."""
        if self.live:
            self._drawn = True
            _write(f"\r{text[: terminal.width() - 1]}\x1b[K")

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._drawn:
            self._drawn = False
            _write("\r\x1b[K")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal is gone, the work is not
        os.write(terminal.STDERR, text.encode())
