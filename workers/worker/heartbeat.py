"""The beat of a worker, which tells that its loop turns, and the gauges that it looks at with each."""

from __future__ import annotations

from typing import Final

from workers.engine.loop import Alarm
from workers.stats import metrics
from workers.worker.core import Core

BEAT_S: Final = 1.0
"""Seconds between beats, at most."""

BEATS: Final = 4
"""Of a worker that is well, in the time in which its loop must turn."""


class Heartbeat:
    """Beats as long as the worker's loop turns. What it looks at is counted elsewhere, or there is little of it."""

    def __init__(self, core: Core, watchdog_s: float) -> None:
        assert watchdog_s > 0, "or it beats without a pause"
        self._core = core
        self._period_s = min(BEAT_S, watchdog_s / BEATS)
        self._alarm = Alarm()

    def beat(self) -> None:
        """Write down that the loop turns and how things are, and do so again and again."""
        core = self._core
        cells = core.turn.counters.memory
        cells[metrics.HELD_BYTES.at] = core.ledger.bytes_held
        cells[metrics.TOPICS.at] = len(core.junction)
        cells[metrics.UNREAD.at] = sum(connection.unread for connection in core.connections.choked)
        cells[metrics.CHOKED.at] = len(core.connections.choked)
        for at, unsent in enumerate((core.unsent, core.peers.unsent), metrics.UNSENT.at):
            cells[at] = unsent
        core.turn.counters.look()
        now = core.turn.clock()
        cells[metrics.BEAT] = int(now * 1e6)
        self._alarm.set(core.turn, now + self._period_s, self.beat)
