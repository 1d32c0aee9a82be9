"""An alarm rings once, at the time it was last set to, and not after it was put off."""

from __future__ import annotations

import gc
import weakref

import pytest

from tests.workers.turns import turn_at
from workers.engine.loop import Alarm, Turn


@pytest.fixture
def turn() -> Turn:
    return turn_at(0.0)


def test_it_rings_once_when_its_time_has_come(turn: Turn) -> None:
    rung: list[float] = []
    alarm = Alarm()

    def ring() -> None:
        rung.append(turn.now)

    alarm.set(turn, 10.0, ring)
    for now in (9.99, 10.02, 20.0):
        turn.begin(now)
    assert rung == [10.02]
    assert alarm.at is None


def test_it_rings_only_at_the_time_that_it_was_last_set_to(turn: Turn) -> None:
    rung: list[float] = []
    alarm = Alarm()

    def ring() -> None:
        rung.append(turn.now)

    for at in (10.0, 30.0, 20.0):
        alarm.set(turn, at, ring)
    for now in (10.02, 20.02, 30.02):
        turn.begin(now)
    assert rung == [20.02]


def test_one_that_was_put_off_does_not_ring(turn: Turn) -> None:
    rung: list[float] = []
    alarm = Alarm()

    def ring() -> None:
        rung.append(turn.now)

    alarm.set(turn, 10.0, ring)
    alarm.off(turn)
    alarm.off(turn)
    turn.begin(11.0)
    assert rung == []


def test_one_that_is_put_off_by_another_due_at_the_same_time_does_not_ring(turn: Turn) -> None:
    # As when the first one closes the connection that both belong to.
    rung: list[str] = []

    def end() -> None:
        rung.append("an end")
        for alarm in alarms:
            alarm.off(turn)

    alarms = [Alarm(), Alarm()]
    for alarm in alarms:
        alarm.set(turn, 10.0, end)
    turn.begin(11.0)
    assert rung == ["an end"]


def test_it_may_be_set_again_while_it_rings(turn: Turn) -> None:
    rung: list[float] = []

    def again() -> None:
        rung.append(turn.now)
        alarm.set(turn, turn.now + 10, again)

    alarm = Alarm()
    alarm.set(turn, 10.0, again)
    for now in (11.0, 12.0, 22.0):
        turn.begin(now)
    assert rung == [11.0, 22.0]


@pytest.mark.parametrize("end", ["it rings", "it is put off"])
def test_one_that_is_not_set_refers_to_nobody(turn: Turn, end: str) -> None:
    class Caller:
        def __init__(self) -> None:
            self.alarm = Alarm()

        def ring(self) -> None:
            pass

    caller = Caller()
    caller.alarm.set(turn, 10.0, caller.ring)
    if end == "it rings":
        turn.begin(11.0)
    else:
        caller.alarm.off(turn)
    gone = weakref.ref(caller)
    gc.disable()
    try:
        del caller
        assert gone() is None
    finally:
        gc.enable()
