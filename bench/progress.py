"""What a benchmark is at, for whoever watches it at a terminal."""

from __future__ import annotations

import sys


def show_progress(words: str) -> None:
    """Put `words` in place of what was shown before; none to leave the line clean."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
