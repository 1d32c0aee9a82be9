"""Which workers hang: each writes down that its loop turns, and one that has not for too long is replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LOOKS: Final = 10
"""Looks within the time in which a loop must turn."""

MAX_PERIOD_S: Final = 1.0


class Watchdog:
    """Knows no processes and no clock: it is shown when each loop turned last."""

    def __init__(self, patience_s: float, now: float) -> None:
        """A loop must turn within `patience_s`."""
        self._patience_s = patience_s
        self._period_s = min(MAX_PERIOD_S, patience_s / LOOKS)
        self._excused_at = now
        self.next_at = now + self._period_s

    def look(self, now: float, beats: Iterable[float]) -> list[bool]:
        """Return for each loop whether it hangs, given when it turned last. All times are in s of one clock."""
        if now - self.next_at > self._patience_s / 2:
            # It was us who did not run: the whole machine, or the node, was stopped. They get their time anew.
            self._excused_at = now
        self.next_at = now + self._period_s
        return [now - max(beat, self._excused_at) > self._patience_s for beat in beats]
