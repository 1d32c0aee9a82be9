"""What Python has done in the turns of a core: its alarms, its descriptors, and what it puts off to the end."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.turns import Alone, turn_at, turn_of
from workers.engine.loop import Alarm, Loop, Turn
from workers.stats.counters import Counters
from workers.stats.hands import own_hand
from workers.stats.metrics import LONGEST_TURN


class Machine(Alone):
    """Tells that what is watched is ready, in that order."""

    def __init__(self) -> None:
        super().__init__(lambda: self.now)
        self.now = 0.0
        self.whats: dict[int, int] = {}

    def watch(self, fd: int, mask: int, what: int) -> None:
        self.whats[fd] = what

    def forget(self, fd: int) -> None:
        del self.whats[fd]

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return [(what, 1) for what in self.whats.values()]


class Does:
    """Does something when it is its turn, whatever it is called for."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def ready(self, events: int) -> None:
        self.what()

    expired = flush = attend = acknowledge = rested = lambda self: self.what()


STEPS = st.lists(
    st.tuples(st.sampled_from(("set", "off", "wait")), st.integers(0, 4), st.floats(0.0, 3.0)), max_size=60
)


@given(STEPS)
def test_an_alarm_rings_once_at_the_time_that_it_was_last_set_to(
    steps: list[tuple[str, int, float]],
) -> None:
    turn = turn_at(0.0)
    alarms, due, rung = [Alarm() for _ in range(5)], dict[int, float](), list[int]()
    for what, number, seconds in [*steps, ("wait", 0, 10.0)]:
        if what == "set":
            due[number] = turn.now + seconds
            alarms[number].set(turn, due[number], lambda number=number: rung.append(number))  # type: ignore[misc]  # its own
        elif what == "off":
            due.pop(number, None)
            alarms[number].off(turn)
        else:
            turn.begin(turn.now + seconds)
            assert all(due[each] <= turn.now for each in rung)
            for each in rung:
                del due[each]
            assert all(at > turn.now - 0.02 for at in due.values())
            rung.clear()
        assert turn.alarms == len(due)
        assert [alarm.at for alarm in alarms] == [due.get(each) for each in range(5)]


def test_one_that_is_put_off_by_another_due_at_the_same_time_does_not_ring_and_it_may_be_set_while_it_rings() -> None:
    turn, rung = turn_at(0.0), list[str]()
    ends, other = Alarm(), Alarm()

    def end() -> None:
        rung.append("an end")
        other.off(turn)
        ends.set(turn, 20.0, lambda: rung.append("again"))

    ends.set(turn, 10.0, end)
    other.set(turn, 10.0, lambda: rung.append("the other"))
    for now in (11.0, 21.0):
        turn.begin(now)
    assert rung == ["an end", "again"]
    turn.drop_alarm(0)


@pytest.mark.parametrize("end", ["it rings", "it is put off"])
def test_one_that_is_not_set_refers_to_nobody(end: str) -> None:
    turn = turn_at(0.0)
    caller = Does(lambda: None)
    alarm = Alarm()
    alarm.set(turn, 10.0, caller.attend)
    if end == "it rings":
        turn.begin(11.0)
    else:
        alarm.off(turn)
    gone = weakref.ref(caller)
    gc.disable()
    try:
        del caller
        assert gone() is None
    finally:
        gc.enable()


def a_turn(machine: Machine, handlers: list[Any]) -> tuple[Turn, Loop]:
    turn = turn_of(machine)
    loop = Loop(turn)
    for fd, handler in enumerate(handlers):
        loop.add(fd, Does(handler))
    return turn, loop


def test_once_something_is_raised_nothing_more_is_done_in_that_turn_and_whoever_has_it_done_is_told() -> None:
    done: list[str] = []

    def fail() -> None:
        done.append("it fails")
        raise SystemExit(3)

    _, loop = a_turn(Machine(), [fail, lambda: done.append("another")])
    with pytest.raises(SystemExit):
        loop.turn()
    assert done == ["it fails"]
    loop.remove(0)
    loop.turn()
    assert done == ["it fails", "another"]


def test_one_that_was_removed_by_another_in_the_same_turn_is_not_told() -> None:
    done: list[int] = []

    def remove(other: int) -> None:
        done.append(1 - other)
        loop.remove(other)

    _, loop = a_turn(Machine(), [lambda: remove(1), lambda: remove(0)])
    assert loop.turn() == 2
    assert done == [0]


def test_what_takes_long_makes_it_later_for_all_that_follows() -> None:
    machine, seen = Machine(), list[float]()

    def works() -> None:
        turn.now = machine.now = 5.0

    turn, loop = a_turn(machine, [works, lambda: seen.append(turn.now)])
    loop.turn()
    assert seen == [5.0]
    assert turn.now == 5.0


@given(st.lists(st.tuples(st.floats(0.002, 0.2), st.floats(0.0, 4.0)), min_size=1, max_size=30))
def test_the_longest_turn_is_shown_for_five_to_ten_seconds(turns: list[tuple[float, float]]) -> None:
    machine = Machine()
    machine.now = 1000.0
    counters = Counters(None, machine.monotonic, lambda: 0.5)
    turn = Turn(machine, counters, own_hand(), None)
    loop = Loop(turn)
    ended = list[tuple[float, float]]()

    def works() -> None:
        machine.now += seconds

    loop.add(0, Does(works))
    for seconds, pause in turns:
        machine.now += pause
        loop.turn()
        ended.append((machine.now, seconds))
        shown = counters.memory[LONGEST_TURN.at] / 1e6
        of_late = [took for at, took in ended if at > machine.now - 5.0]
        before = [took for at, took in ended if at > machine.now - 14.3]  # 10 s, and a pause with a turn
        assert max(of_late) - 2e-6 <= shown <= max(before) + 2e-6
