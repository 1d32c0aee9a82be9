"""What a tally adds, and where."""

from __future__ import annotations

from array import array

import pytest

from skywalker import errors
from skywalker.journal.record import HERE, METHODS, NODE, OUTCOMES, PROMPT, PUBLISH, ROUTES, SEND, TIMED_OUT
from workers.stats import figures
from workers.stats.board import Board
from workers.stats.closes import Close
from workers.stats.figures import BUCKETS, HISTOGRAM_CELLS
from workers.stats.tally import Tally

TURN = figures.TURN.at


def changed(tally: Tally) -> dict[int, int]:
    """Return the cells that are not zero."""
    return {at: cell for at, cell in enumerate(tally.memory) if cell}


@pytest.mark.parametrize("us", [0, 1, 2, 3, 4, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**37 - 1])
def test_a_time_is_below_the_bound_of_its_bucket_and_not_below_half_of_that(us: int) -> None:
    tally = Tally()
    tally.took(TURN, (us + 0.5) / 1e6)
    (bucket, counted), (at, total) = sorted(changed(tally).items()) if us else (*changed(tally).items(), (0, 0))
    assert counted == 1
    assert us < 2 ** (bucket - TURN)
    assert bucket == TURN or us >= 2 ** (bucket - TURN) / 2
    assert (at, total) == (TURN + BUCKETS if us else 0, us)


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(-1.0, 0), (0.0, 0), (float(2**40), BUCKETS - 1), (2**37 / 1e6, BUCKETS - 1)]
)
def test_times_that_no_bucket_is_for_are_in_the_first_or_the_last(seconds: float, bucket: int) -> None:
    tally = Tally()
    tally.took(TURN, seconds)
    assert tally.memory[TURN + bucket] == 1
    assert sum(tally.memory[TURN : TURN + BUCKETS]) == 1


def test_histograms_do_not_touch_their_neighbours() -> None:
    tally = Tally()
    for seconds in (0.0, 1e-6, 1.0, 1e9):
        tally.took(figures.HAND_OFF.at, seconds)
    assert all(figures.HAND_OFF.at <= at < figures.HAND_OFF.end for at in changed(tally))


def test_every_method_outcome_and_route_has_a_cell_of_its_own() -> None:
    for method in range(len(METHODS)):
        for outcome in range(len(OUTCOMES)):
            for route in range(len(ROUTES)):
                tally = Tally()
                tally.answered(b"topic", method, outcome, route, 0.5)
                calls = {figures.CALLS.at + method * len(OUTCOMES) + outcome: 1, figures.ROUTED.at + route: 1}
                times = {at: cell for at, cell in changed(tally).items() if at not in calls}
                assert calls.items() <= changed(tally).items()
                if OUTCOMES[outcome] == "met":
                    first = figures.WAIT.at + method * HISTOGRAM_CELLS
                elif OUTCOMES[outcome] == "prompt" and METHODS[method] != "publish":
                    first = figures.HAND_OFF.at
                else:
                    assert times == {}
                    continue
                assert times == {first + (500_000).bit_length(): 1, first + BUCKETS: 500_000}


def test_every_error_is_counted_under_its_code() -> None:
    tally = Tally()
    for cls in errors.BY_CODE.values():
        tally.refused(cls("no"))
    assert changed(tally) == dict.fromkeys(range(figures.REFUSED.at, figures.REFUSED.end), 1)


def test_a_limit_is_counted_where_it_is_the_reason_and_nowhere_else() -> None:
    tally = Tally()
    tally.limited(errors.Busy("no", {"limit": "max_calls", "value": 5}))
    tally.limited("half_frame_s")
    tally.limited(errors.BadId("no", {"limit": "max_calls"}))
    tally.limited(errors.Busy("no", {"limit": 7}))
    tally.limited(errors.Busy("no", {"limit": "what a later version has"}))
    tally.limited(errors.Busy("no"))
    rows = {name: cells[0] for (name,), cells in figures.LIMITED.rows(tally.memory) if cells[0]}
    assert rows == {"max_calls": 1, "half_frame_s": 1}


def test_reasons_have_the_names_that_figures_have() -> None:
    tally = Tally()
    for times, reason in enumerate(Close, 1):
        for _ in range(times):
            tally.closed("peer", reason, "text")
    assert [cells[0] for _, cells in figures.CLOSED.rows(tally.memory)] == [*range(1, len(Close) + 1)]
    assert [labels for labels, _ in figures.CLOSED.rows(tally.memory)] == [(reason.label,) for reason in Close]


def test_what_is_counted_stands_in_the_part_of_a_board() -> None:
    board = Board(2)
    tallies = [Tally(board.part(board.take(slot))) for slot in range(2)]
    tallies[1].answered(b"topic", SEND, TIMED_OUT, HERE, 1.0)
    tallies[0].answered(b"topic", PUBLISH, PROMPT, NODE, 1.0)
    tallies[1].answered(b"topic", SEND, TIMED_OUT, NODE, 1.0)
    reading = board.read()
    routes = [[cells[0] for _, cells in figures.ROUTED.rows(reading.slot(slot))] for slot in range(2)]
    assert routes == [[0, 0, 1], [1, 0, 1]]
    board.give_back(1)
    assert board.read().total()[figures.CALLS.at + SEND * len(OUTCOMES) + TIMED_OUT] == 2


@pytest.mark.parametrize("memory", [memoryview(bytes(8 * figures.WORKER_CELLS)).cast("q"), None])
def test_memory_that_cannot_be_written_is_refused_and_none_is_made(memory: memoryview[int] | None) -> None:
    if memory is None:
        assert Tally().memory is not Tally().memory
        assert isinstance(Tally().memory.obj, array)
    else:
        with pytest.raises((BufferError, TypeError)):
            Tally(memory).took(TURN, 1.0)
