"""What a worker adds, and where."""

from __future__ import annotations

import contextlib
import sys
from array import array

import pytest

from skywalker import build, errors
from skywalker.journal.record import HERE, METHODS, NODE, OUTCOMES, PROMPT, PUBLISH, ROUTES, SEND, TIMED_OUT
from workers.engine.machine import MACHINE
from workers.stats import metrics
from workers.stats.close_reasons import Close
from workers.stats.counters import Counters
from workers.stats.metrics import BUCKETS, HISTOGRAM_CELLS
from workers.stats.shared import SharedCounters

TURN = metrics.TURN.at


def counters_in(memory: memoryview[int] | None = None) -> Counters:
    """Return counters that count in these cells, or some of their own."""
    return Counters(memory, MACHINE.monotonic, MACHINE.random)


def changed(counters: Counters) -> dict[int, int]:
    """Return the cells that are not zero."""
    return {at: cell for at, cell in enumerate(counters.memory) if cell}


@pytest.mark.parametrize("us", [0, 1, 2, 3, 4, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**37 - 1])
def test_a_time_is_below_the_bound_of_its_bucket_and_not_below_half_of_that(us: int) -> None:
    counters = counters_in()
    counters.took(TURN, (us + 0.5) / 1e6)
    (bucket, counted), (at, total) = sorted(changed(counters).items()) if us else (*changed(counters).items(), (0, 0))
    assert counted == 1
    assert us < 2 ** (bucket - TURN)
    assert bucket == TURN or us >= 2 ** (bucket - TURN) / 2
    assert (at, total) == (TURN + BUCKETS if us else 0, us)


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(-1.0, 0), (0.0, 0), (float(2**40), BUCKETS - 1), (2**37 / 1e6, BUCKETS - 1)]
)
def test_times_that_no_bucket_is_for_are_in_the_first_or_the_last(seconds: float, bucket: int) -> None:
    counters = counters_in()
    counters.took(TURN, seconds)
    assert counters.memory[TURN + bucket] == 1
    assert sum(counters.memory[TURN : TURN + BUCKETS]) == 1


def test_histograms_do_not_touch_their_neighbours() -> None:
    counters = counters_in()
    for seconds in (0.0, 1e-6, 1.0, 1e9):
        counters.took(metrics.HAND_OFF.at, seconds)
    assert all(metrics.HAND_OFF.at <= at < metrics.HAND_OFF.end for at in changed(counters))


def test_every_method_outcome_and_route_has_a_cell_of_its_own() -> None:
    for method in range(len(METHODS)):
        for outcome in range(len(OUTCOMES)):
            for route in range(len(ROUTES)):
                counters = counters_in()
                counters.answered(b"topic", method, outcome, route, 0.5)
                calls = {metrics.CALLS.at + method * len(OUTCOMES) + outcome: 1, metrics.ROUTED.at + route: 1}
                times = {at: cell for at, cell in changed(counters).items() if at not in calls}
                assert calls.items() <= changed(counters).items()
                if OUTCOMES[outcome] == "met":
                    first = metrics.WAIT.at + method * HISTOGRAM_CELLS
                elif OUTCOMES[outcome] == "prompt" and METHODS[method] != "publish":
                    first = metrics.HAND_OFF.at
                else:
                    assert times == {}
                    continue
                assert times == {first + (500_000).bit_length(): 1, first + BUCKETS: 500_000}


def test_every_error_is_counted_under_its_code() -> None:
    counters = counters_in()
    for cls in errors.BY_CODE.values():
        counters.refused(cls("no"))
    assert changed(counters) == dict.fromkeys(range(metrics.REFUSED.at, metrics.REFUSED.end), 1)


def test_a_limit_is_counted_where_it_is_the_reason_and_nowhere_else() -> None:
    counters = counters_in()
    counters.limited(errors.Busy("no", {"limit": "max_calls", "value": 5}))
    counters.limited("half_frame_s")
    counters.limited(errors.BadId("no", {"limit": "max_calls"}))
    counters.limited(errors.Busy("no", {"limit": 7}))
    counters.limited(errors.Busy("no", {"limit": "what a later version has"}))
    counters.limited(errors.Busy("no"))
    rows = {name: cells[0] for (name,), cells in metrics.LIMITED.rows(counters.memory) if cells[0]}
    assert rows == {"max_calls": 1, "half_frame_s": 1}


def test_reasons_have_the_names_that_metrics_have() -> None:
    counters = counters_in()
    for times, reason in enumerate(Close, 1):
        for _ in range(times):
            counters.closed("peer", reason, "text")
    assert [cells[0] for _, cells in metrics.CLOSED.rows(counters.memory)] == [*range(1, len(Close) + 1)]
    assert [labels for labels, _ in metrics.CLOSED.rows(counters.memory)] == [(reason.label,) for reason in Close]


def test_what_is_counted_stands_in_a_part_of_the_shared_counters() -> None:
    shared = SharedCounters(2)
    counters = [counters_in(shared.part(shared.take(slot))) for slot in range(2)]
    counters[1].answered(b"topic", SEND, TIMED_OUT, HERE, 1.0)
    counters[0].answered(b"topic", PUBLISH, PROMPT, NODE, 1.0)
    counters[1].answered(b"topic", SEND, TIMED_OUT, NODE, 1.0)
    reading = shared.read()
    routes = [[cells[0] for _, cells in metrics.ROUTED.rows(reading.slot(slot))] for slot in range(2)]
    assert routes == [[0, 0, 1], [1, 0, 1]]
    shared.give_back(1)
    assert shared.read().total()[metrics.CALLS.at + SEND * len(OUTCOMES) + TIMED_OUT] == 2


@pytest.mark.skipif(not build.ASSERTIONS, reason="what checks it is left out of a release")
@pytest.mark.parametrize("codes", [(len(METHODS), 0, 0), (0, len(OUTCOMES), 0), (0, 0, len(ROUTES))])
def test_what_is_no_method_outcome_or_route_is_added_nowhere(
    monkeypatch: pytest.MonkeyPatch, codes: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)  # compiled, it has no way to raise
    counters = counters_in()
    with contextlib.suppress(AssertionError):
        counters.answered(b"topic", *codes, 0.5)
    assert not changed(counters)


@pytest.mark.parametrize("memory", [memoryview(bytes(8 * metrics.WORKER_CELLS)).cast("q"), None])
def test_memory_that_cannot_be_written_is_refused_and_none_is_made(memory: memoryview[int] | None) -> None:
    if memory is None:
        assert counters_in().memory is not counters_in().memory
        assert isinstance(counters_in().memory.obj, array)
    else:
        with pytest.raises((BufferError, TypeError)):
            counters_in(memory).took(TURN, 1.0)
