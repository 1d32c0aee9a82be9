"""Metrics in shared memory: what dead workers counted stays, what they held does not, and no reader sees half of it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.helpers import time_factor
from workers.stats.metrics import (
    BEAT,
    CALLS,
    CONNECTIONS,
    NODE_CELLS,
    PID,
    RESTARTED,
    WAIT,
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


def test_each_metric_of_each_worker_has_a_cell_of_its_own() -> None:
    shared = SharedCounters(3)
    parts = [take(shared, slot) for slot in (0, 1, 2, 0, 1, 2)]
    for number, part in enumerate(parts):
        cells = shared.part(part)
        for at in range(FIRST, WORKER_CELLS):
            cells[at] = number * 10_000 + at
    for at in range(NODE_CELLS):
        shared.node[at] = -at
    reading = shared.read()
    assert [list(live.cells[FIRST:WORKER_CELLS]) for live in reading.live()] == [
        [number * 10_000 + at for at in range(FIRST, WORKER_CELLS)] for number in range(6)
    ]
    assert list(reading.node[:NODE_CELLS]) == [-at for at in range(NODE_CELLS)]


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


def test_a_part_that_is_given_again_is_empty() -> None:
    shared = SharedCounters(1)
    part = take(shared, 0)
    shared.part(part)[CALLS.at] = shared.part(part)[CONNECTIONS.at] = 5
    shared.give_back(part)
    again = take(shared, 0)
    assert again == part
    assert list(shared.part(again)[:WORKER_CELLS]) == [0, 1, 0, *[0] * (WORKER_CELLS - 3)]


def test_a_worker_that_is_about_to_be_forked_has_its_part_at_once() -> None:
    shared = SharedCounters(2)
    parts = {shared.take(slot) for slot in (0, 1, 0, 1)}
    assert len(parts) == 4
    assert sorted((live.slot, live.pid) for live in shared.read().live()) == [(0, -1), (0, -1), (1, -1), (1, -1)]
    with pytest.raises(AssertionError):
        shared.take(0)


def test_predecessor_and_successor_add_up_and_so_do_slots() -> None:
    shared = SharedCounters(2)
    for slot, calls in ((0, 1), (0, 10), (1, 100)):
        shared.part(take(shared, slot))[CALLS.at] = calls
    reading = shared.read()
    assert (reading.slot(0)[CALLS.at], reading.slot(1)[CALLS.at], reading.total()[CALLS.at]) == (11, 100, 111)


def test_metrics_of_the_node_are_no_workers() -> None:
    shared = SharedCounters(1)
    shared.node[RESTARTED.at] = 3
    assert shared.read().node[RESTARTED.at] == 3
    assert not any(shared.read().total())


def test_counters_never_go_backwards_for_who_reads_while_workers_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    # The other process adds up nearly all the time, so a busy machine has it wait in the middle of that.
    monkeypatch.setattr("workers.stats.shared.TRIES", 10_000)
    shared = SharedCounters(2)
    histogram = range(WAIT.at, WAIT.at + WAIT.width)

    def workers_come_and_go() -> None:
        dice = random.Random(1)
        parts = [take(shared, 0), take(shared, 1)]
        while True:
            for number, part in enumerate(parts):
                cells = shared.part(part)
                for _ in range(dice.randrange(20)):
                    cells[CALLS.at] += 1
                    for at in histogram:
                        cells[at] += 1
                shared.give_back(part)
                parts[number] = take(shared, number)

    pid = forked(workers_come_and_go)
    try:
        deadline = time.monotonic() + 10.0 * time_factor()
        last, reads = [0] * (1 + len(histogram)), 0
        while reads < 1000 or last[0] < 10_000:
            assert time.monotonic() < deadline, (reads, last[0])
            total = shared.read().total()
            now = [total[CALLS.at], *(total[at] for at in histogram)]
            assert all(before <= after for before, after in zip(last, now, strict=True))
            last = now
            reads += 1
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


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
