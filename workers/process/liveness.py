"""Whether the loops of all processes turn, who is replaced because his does not, and what the manager hears of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from workers.process.agent_keeper import AgentKeeper
from workers.process.crew import Crew
from workers.process.notify import Notifier
from workers.process.slot import State
from workers.stats import metrics
from workers.stats.shared import SharedCounters

AGENT_PATIENCE_S: Final = 10.0
"""Seconds in which the loop of the agent must turn, or longer if workers get that: it loads much as it begins."""

STATUS_S: Final = 5.0
"""Seconds between the lines in which the manager is told how the node does."""

LOOKS: Final = 10
"""Looks within the time in which a loop must turn."""

MAX_PERIOD_S: Final = 1.0


class Watchdog:
    """Knows no processes and no clock: it is shown when each loop turned last."""

    def __init__(self, patience_s: float, now: float) -> None:
        """A loop must turn within `patience_s`."""
        assert patience_s > 0, "or all hang"
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


class Liveness:
    """Has workers, and an agent, replaced that hang. The manager hears that the node is alive only while none does."""

    def __init__(
        self, crew: Crew, agent: AgentKeeper, shared: SharedCounters, notifier: Notifier, patience_s: float, now: float
    ) -> None:
        """The loop of each worker must turn within `patience_s`."""
        self._crew = crew
        self._agent = agent
        self._shared = shared
        self._notifier = notifier
        self._watchdog = Watchdog(patience_s, now)
        self._agents_watchdog = Watchdog(max(patience_s, AGENT_PATIENCE_S), now)
        self._status_at = now

    @property
    def next_at(self) -> float:
        """When to look next."""
        return self._watchdog.next_at

    def look(self, now: float, doing: str) -> None:
        """Look at all workers; `doing` is what the node does just now, in one word."""
        processes = [each for each in self._crew.processes() if each.state is not State.STOPPING]
        beats = [max(each.started_at, self._shared.part(each.part)[metrics.BEAT] / 1e6) for each in processes]
        hang = self._watchdog.look(now, beats)
        for process, hangs in zip(processes, hang, strict=True):
            if hangs:
                self._crew.abort(process)
        agent_hangs = False
        if self._agent.agent is not None:
            beat = max(self._agent.agent.started_at, self._shared.node[metrics.AGENT_BEAT] / 1e6)
            (agent_hangs,) = self._agents_watchdog.look(now, [beat])
            if agent_hangs:
                self._agent.hangs()
        if not (agent_hangs or any(hang)):
            self._notifier.alive()
        if self._status_at <= now:
            self._status_at = now + STATUS_S
            self._notifier.status(f"{doing}: {self._status()}")

    def _status(self) -> str:
        cells = self._shared.read().total()
        connections = sum(cells[metrics.CONNECTIONS.at : metrics.CONNECTIONS.end])
        waiting = sum(cells[metrics.WAITING.at : metrics.WAITING.end])
        answered = sum(cells[metrics.CALLS.at : metrics.CALLS.end])
        workers = sum(slot.worker is not None for slot in self._crew.slots)
        return f"{workers} workers, {connections} connections, {waiting} waiting, {answered} calls answered"
