"""The beat of a worker, which tells that its loop turns, and the gauges that it looks at with each."""

from __future__ import annotations

from typing import Final

from workers.engine.loop import Alarm
from workers.stats import metrics
from workers.worker.hub import Hub

BEAT_S: Final = 1.0
"""Seconds between beats, at most."""

BEATS: Final = 4
"""Of a worker that is well, in the time in which its loop must turn."""


class Heartbeat:
    """Beats as long as the worker's loop turns. What it looks at is counted elsewhere, or there is little of it."""

    def __init__(self, hub: Hub, watchdog_s: float) -> None:
        assert watchdog_s > 0, "or it beats without a pause"
        self._hub = hub
        self._period_s = min(BEAT_S, watchdog_s / BEATS)
        self._alarm = Alarm()

    def beat(self) -> None:
        """Write down that the loop turns and how things are, and do so again and again."""
        hub, core = self._hub, self._hub.core
        choked = core.choked()
        cells = hub.turn.counters.memory
        _, cells[metrics.HELD_BYTES.at] = core.held()
        cells[metrics.TOPICS.at] = core.topic_count
        cells[metrics.UNREAD.at] = sum(unread for unread, _ in choked)
        cells[metrics.CHOKED.at] = len(choked)
        for at, unsent in enumerate((hub.unsent, hub.peers.unsent), metrics.UNSENT.at):
            cells[at] = unsent
        for at, links in enumerate(hub.peers.counts(), metrics.LINKS.at):
            cells[at] = links
        now = hub.turn.clock()
        recent = hub.turn.counters.recent
        if recent.look(now):
            core.tell_next(recent.gap())
        cells[metrics.BEAT] = int(now * 1e6)
        self._alarm.set(hub.turn, now + self._period_s, self.beat)
