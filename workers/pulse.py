"""The beat of a worker, which tells that its loop turns, and the gauges that it looks at with each."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from workers import figures
from workers.alarm import Alarm

if TYPE_CHECKING:
    from workers.router import Router

BEAT_S: Final = 1.0
"""Seconds between beats, at most."""

BEATS: Final = 4
"""Of a worker that is well, in the time in which its loop must turn."""


class Pulse:
    """Beats as long as the worker's loop turns. What it looks at is counted elsewhere, or there is little of it."""

    def __init__(self, router: Router, watchdog_s: float) -> None:
        self._router = router
        self._period_s = min(BEAT_S, watchdog_s / BEATS)
        self._alarm = Alarm()

    def beat(self) -> None:
        """Write down that the loop turns and how things are, and do so again and again."""
        router = self._router
        cells = router.tally.memory
        cells[figures.HELD_BYTES.at] = router.bytes_held
        cells[figures.TOPICS.at] = len(router.junction)
        cells[figures.UNREAD.at] = sum(outlet.unread for outlet in router.choked)
        cells[figures.CHOKED.at] = len(router.choked)
        for at, unsent in enumerate((router.unsent, router.peers.unsent), figures.UNSENT.at):
            cells[at] = unsent
        router.tally.look()
        now = monotonic()
        cells[figures.BEAT] = int(now * 1e6)
        self._alarm.set(router.turn, now + self._period_s, self.beat)
