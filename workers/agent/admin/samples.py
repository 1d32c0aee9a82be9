"""What the shared counters said once a second: the latest, the one before, and of the last minutes what is shown."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from workers.agent.admin.processes import Processes, Usage
from workers.agent.admin.view import View
from workers.stats import metrics
from workers.stats.log import Log
from workers.stats.metrics import Cells
from workers.stats.shared import Live, SharedCounters

STEP_S: Final = 1.0
"""Seconds from one sample to the next."""

KEPT: Final = 300
"""Samples whose rates and times are kept, for those who want to see how it went."""

WINDOW: Final = 60
"""Samples that percentiles of now are made of."""


@dataclass(frozen=True, slots=True)
class Sample:
    """All metrics at one moment."""

    time: float  # Unix
    at: float  # of the monotonic clock
    slots: list[Cells]
    total: Cells
    node: Cells
    live: list[Live]
    processes: list[Usage]


@dataclass(frozen=True, slots=True)
class Times:
    """Histograms at one moment: of all workers, and of the turns of each slot."""

    wait: Cells
    hand_off: Cells
    turns: list[Cells]


@dataclass(frozen=True, slots=True)
class Row:
    """What happened between two samples: rates are per second, times in seconds, None if there were none."""

    calls: float
    met: float
    hand_off_p50: float | None
    hand_off_p99: float | None
    wait_p99: float | None
    connections: int
    waiting: int
    cpu: float  # cores
    restarts: int  # so far, of workers that were not reloaded, and of agents
    limits_hit: int  # so far


class Samples:
    """Takes a sample a second, for as long as its loop runs. All but run() may be called before it."""

    def __init__(self, shared: SharedCounters, view: View, processes: Processes) -> None:
        self._shared = shared
        self._view = view
        self.processes = processes
        self.rows: deque[Row] = deque(maxlen=KEPT)
        self._times: deque[Times] = deque(maxlen=WINDOW + 1)
        self._taken = asyncio.Event()
        self._open_files: tuple[Sample, dict[int, int]] | None = None
        self.latest = self.before = self._sample()
        self._times.append(_times(self.latest))

    async def run(self, log: Log) -> None:
        """Take them."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + STEP_S, loop.time())  # those that were missed while the machine slept are not made up for
            await asyncio.sleep(due - loop.time())
            try:
                self.take()
            except RuntimeError as error:
                log.warning("no-sample", reason=error)

    def take(self) -> None:
        """Take one now, and wake those who wait for it."""
        self.before, self.latest = self.latest, self._sample()
        self._times.append(_times(self.latest))
        self.rows.append(self._row())
        self._taken.set()
        self._taken = asyncio.Event()

    async def next(self) -> None:
        """Wait for one."""
        await self._taken.wait()

    def open_files(self) -> dict[int, int]:
        """Return how many files each process has open, by pid; counted once for each sample, and only if asked."""
        if self._open_files is None or self._open_files[0] is not self.latest:
            self._open_files = self.latest, self.processes.open_files()
        return self._open_files[1]

    @property
    def seconds(self) -> float:
        """The time between the latest two."""
        return max(self.latest.at - self.before.at, 1e-3)

    def rate(self, metric: metrics.Metric) -> float:
        """Return what a counter grew by in a second, between the latest two."""
        return (metric.total(self.latest.total) - metric.total(self.before.total)) / self.seconds

    def met_rate(self) -> float:
        """Return how many calls a second met their partner, between the latest two."""
        return (_met(self.latest.total) - _met(self.before.total)) / self.seconds

    def history(self) -> bytes:
        """Return how it went in the last minutes as JSON: a list for each number, the oldest first."""
        columns = {each.name: [getattr(row, each.name) for row in self.rows] for each in dataclasses.fields(Row)}
        content = {"step": STEP_S, "time": self.latest.time, **columns}
        return json.dumps(content, separators=(",", ":")).encode()

    def span(self) -> tuple[Times, Times]:
        """Return the latest histograms, and those of a minute ago."""
        return self._times[-1], self._times[0]

    def _sample(self) -> Sample:
        reading = self._shared.read()
        now = time.monotonic()
        live = list(reading.live())
        processes = self.processes.look(named(self._view, live), now)
        slots = [reading.slot(number) for number in range(reading.slots)]
        total = list(map(sum, zip(*slots, strict=True)))
        return Sample(time.time(), now, slots, total, reading.node, live, processes)

    def _row(self) -> Row:
        assert len(self._times) > 1, "the first was taken as this was made"
        newer, older = self._times[-1], self._times[-2]
        hand_off = metrics.quantiles(newer.hand_off, older.hand_off)
        return Row(
            calls=self.rate(metrics.CALLS),
            met=self.met_rate(),
            hand_off_p50=hand_off["p50"],
            hand_off_p99=hand_off["p99"],
            wait_p99=metrics.quantiles(newer.wait, older.wait)["p99"],
            connections=metrics.CONNECTIONS.total(self.latest.total),
            waiting=metrics.WAITING.total(self.latest.total),
            cpu=sum(usage.cpu for usage in self.latest.processes),
            restarts=_unwanted_restarts(self.latest.node),
            limits_hit=metrics.LIMITED.total(self.latest.total),
        )


def named(view: View, live: list[Live]) -> Iterator[tuple[int, str]]:
    """Yield the pids of a node's processes, and what they are called."""
    yield view.pid, "supervisor"
    yield os.getpid(), "agent"
    for worker in live:
        if worker.pid > 0:
            yield worker.pid, f"worker-{worker.slot}"


def _times(sample: Sample) -> Times:
    turns = [slot[metrics.TURN.at : metrics.TURN.end] for slot in sample.slots]
    return Times(metrics.WAIT.merged(sample.total), metrics.HAND_OFF.merged(sample.total), turns)


def _unwanted_restarts(node: Cells) -> int:
    workers, agents = metrics.RESTARTED.total(node), metrics.AGENT_RESTARTED.total(node)
    return workers - node[metrics.RESTARTED.cell("reload")] + agents


def _met(cells: Cells) -> int:
    return sum(outcomes["met"] + outcomes["prompt"] for outcomes in metrics.CALLS.by_label(cells).values())
