"""What the watchdog makes of loops that turn, that hang, and of a machine that stood still."""

from __future__ import annotations

import pytest

from workers.process.liveness import LOOKS, MAX_PERIOD_S, Watchdog

PATIENCE_S = 4.0


def looks(watchdog: Watchdog, until: float, beats: list[float], start: float = 0.0) -> float | None:
    """Have it look whenever it wants to; return when it first says that the only loop hangs, which beats at `beats`."""
    now = start
    while (now := max(now, watchdog.next_at)) <= until:
        if watchdog.look(now, [max(beat for beat in beats if beat <= now)]) == [True]:
            return now
    return None


def test_it_looks_often_enough_to_see_in_time() -> None:
    for patience in (0.1, 1.0, 10.0, 3600.0):
        watchdog = Watchdog(patience, 0.0)
        assert 0 < watchdog.next_at <= min(MAX_PERIOD_S, patience / LOOKS)


def test_a_loop_that_does_not_turn_is_found_out_when_its_time_is_over_and_not_before() -> None:
    found = looks(Watchdog(PATIENCE_S, 0.0), 20.0, [0.0])
    assert found is not None
    assert PATIENCE_S < found <= PATIENCE_S * 1.1 + 1e-9


def test_a_loop_that_turns_is_left_alone_however_long_it_does() -> None:
    assert looks(Watchdog(PATIENCE_S, 0.0), 1000.0, [float(beat) for beat in range(0, 1001, 3)]) is None


def test_of_several_loops_those_are_told_that_hang() -> None:
    watchdog = Watchdog(PATIENCE_S, 0.0)
    for _ in range(5 * LOOKS):
        now = watchdog.next_at
        hangs = watchdog.look(now, [now, 0.0, now - 1.0])
    assert hangs == [False, True, False]


@pytest.mark.parametrize("stopped_s", [PATIENCE_S, 100.0, 1e6])
def test_a_node_that_stood_still_finds_nobody_out_before_all_had_their_time_anew(stopped_s: float) -> None:
    watchdog = Watchdog(PATIENCE_S, 0.0)
    watchdog.look(watchdog.next_at, [0.0])
    woken = watchdog.next_at + stopped_s
    assert watchdog.look(woken, [0.0]) == [False]
    found = looks(watchdog, woken + 100.0, [0.0], start=woken)
    assert found is not None, "it hangs all the same"
    assert PATIENCE_S < found - woken <= PATIENCE_S * 1.1 + 1e-9


def test_looks_that_come_a_little_late_excuse_nobody() -> None:
    # Or on a machine that is always busy a worker that hangs would never be found out.
    watchdog = Watchdog(PATIENCE_S, 0.0)
    now = 0.0
    while not any(watchdog.look(now, [0.0])):
        now = watchdog.next_at + PATIENCE_S / 2 - 0.01
        assert now < 5 * PATIENCE_S
