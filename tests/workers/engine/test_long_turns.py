"""Those who want more than their share of a turn: however many they are, a turn ends soon, and each has its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.workers.turns import Alone, turn_at, turn_of
from workers.engine.loop import Alarm, Loop, Turn

LONG_S = 0.0005
"""Seconds after which a turn is long."""


class Guest:
    """Works for some seconds in each turn that it has, so many times."""

    def __init__(self, turn: Turn, served: list[Guest], works_s: float, times: int) -> None:
        self.turn = turn
        self.served = served
        self.works_s = works_s
        self.times = times

    def rested(self) -> None:
        self.served.append(self)
        self.turn.now += self.works_s
        self.times -= 1
        if self.times:
            self.turn.resting.append(self)


@given(st.lists(st.tuples(st.sampled_from((0.0, 0.0002, 0.001)), st.integers(1, 5)), max_size=20))
def test_turns_end_soon_and_who_has_not_had_one_is_first_in_the_next(wishes: list[tuple[float, int]]) -> None:
    served: list[Guest] = []
    turn = turn_at(0.0)
    queue = [Guest(turn, served, works_s, times) for works_s, times in wishes]
    turn.resting = [*queue]
    while queue:
        turn.begin(turn.now + 1.0)
        served.clear()
        turn.go_on()
        count = len(served)
        assert served == queue[:count]
        assert sum(each.works_s for each in served[:-1]) < LONG_S, "nobody more, once it is long"
        assert count == len(queue) or sum(each.works_s for each in served) >= LONG_S, "and nobody less"
        queue = queue[count:] + [each for each in served if each.times]
        assert turn.resting == queue


class Waited(Alone):
    """Remembers how long it was to wait."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.waits: list[float | None] = []

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        self.waits.append(seconds)
        return []


@given(st.booleans(), st.sampled_from((None, "resting", "heavy")), st.none() | st.floats(0.0, 100.0))
def test_a_loop_waits_for_as_long_as_its_turn_says(patient: bool, who: str | None, due: float | None) -> None:
    machine = Waited()
    turn = turn_of(machine)
    if due is not None:
        Alarm().set(turn, due, lambda: None)
    if who is not None:
        getattr(turn, who).append(Guest(turn, [], 0.0, 1))
    wait = turn.wait(patient)
    if not patient or who is not None:
        assert wait == 0.0
    elif due is None:
        assert wait is None
    else:
        assert wait is not None
        assert due <= wait <= due + 0.03
    Loop(turn).turn(patient)
    assert machine.waits == [wait]
