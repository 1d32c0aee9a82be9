"""Metrics in shared memory: what dead workers counted stays, what they held does not, and no reader sees half of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from workers.stats.metrics import (
    BEAT,
    CALLS,
    PID,
    WORKER_CELLS,
    WORKER_METRICS,
    Kind,
)
from workers.stats.shared import Reading, SharedCounters

COUNTERS = [at for each in WORKER_METRICS if each.kind is not Kind.GAUGE for at in range(each.at, each.end)]
GAUGES = [at for each in WORKER_METRICS if each.kind is Kind.GAUGE for at in range(each.at, each.end)]


def forked(do: Callable[[], None]) -> int:
    """Do something in a process of its own; return its pid."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            do()
            status = 0
        finally:
            os._exit(status)
    return pid


def take(shared: SharedCounters, slot: int, pid: int = 1) -> int:
    """Give a part to a worker of that pid."""
    part = shared.take(slot)
    shared.part(part)[PID] = pid
    return part


def test_what_another_process_counts_is_read_here() -> None:
    shared = SharedCounters(2)
    part = take(shared, 1)

    def count() -> None:
        shared.part(part)[CALLS.at] += 7
        shared.part(part)[BEAT] = 1_500_000

    _, status = os.waitpid(forked(count), 0)
    assert status == 0
    reading = shared.read()
    assert reading.slot(1)[CALLS.at] == reading.total()[CALLS.at] == 7
    assert reading.slot(0)[CALLS.at] == 0
    [live] = reading.live()
    assert (live.slot, live.pid, live.beat) == (1, 1, 1.5)


FIRST = WORKER_METRICS[0].at
"""Before it is whose part it is."""


def test_counters_outlive_their_worker_and_gauges_do_not() -> None:
    shared = SharedCounters(2)
    for life in range(1, 4):
        part = take(shared, 1)
        cells = shared.part(part)
        for at in range(FIRST, WORKER_CELLS):
            cells[at] = at
        living = shared.read().slot(1)
        assert all(living[at] == life * at for at in COUNTERS)
        assert all(living[at] == at for at in GAUGES)
        shared.give_back(part)
        after = shared.read().slot(1)
        assert all(after[at] == life * at for at in COUNTERS)
        assert not any(after[at] for at in GAUGES)
        assert not [*shared.read().live()]
    assert not any(shared.read().slot(0)[at] for at in COUNTERS)


def test_a_reader_waits_for_metrics_that_are_being_added_up_and_gives_up_on_a_supervisor_that_died_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = SharedCounters(1)
    shared._cells[0] += 1
    with pytest.raises(RuntimeError, match="the supervisor died"):
        shared.read()

    def finished(seconds: float) -> None:
        shared._cells[0] += 1

    monkeypatch.setattr("workers.stats.shared.time.sleep", finished)
    assert isinstance(shared.read(), Reading)
