from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from skywalker.deadlines import Deadlines

DAY_S = 86_400.0
LATEST_S = 0.020
CLOCK_TICK_S = 1e-6  # a clock never reads the same for long: what wakes a hair too early looks again


class DeadlinesAgainstADict(RuleBasedStateMachine):
    """Deadlines and a dict of item to time do the same, while a clock that only goes forward is simulated."""

    items = Bundle("items")

    def __init__(self) -> None:
        super().__init__()
        self.deadlines = Deadlines()
        self.model: dict[int, float] = {}
        self.now = 0.0
        self.count = 0
        self.started = False

    @rule(uptime=st.floats(0, 1e9))
    def start_the_clock_anywhere(self, uptime: float) -> None:
        if not self.started:
            self.now = uptime
            self.started = True

    @rule(target=items, timeouts=st.lists(st.floats(0, 0.1) | st.floats(0, DAY_S), max_size=5))
    def add(self, timeouts: list[float]) -> object:
        self.started = True
        added = []
        for timeout in timeouts:
            self.count += 1
            self.model[self.count] = self.now + timeout
            self.deadlines.add(self.count, self.now + timeout)
            added.append((self.count, self.now + timeout))
        return multiple(*added)

    @rule(added=consumes(items))
    def discard(self, added: tuple[int, float]) -> None:
        item, at = added
        self.deadlines.discard(item, at)
        self.model.pop(item, None)  # it may have been due before

    @rule(added=items)
    def discard_at_another_time_does_nothing(self, added: tuple[int, float]) -> None:
        item, at = added
        self.deadlines.discard(item, at + 1.0)

    @rule(seconds=st.floats(0, 0.05) | st.floats(0, DAY_S))
    def let_time_pass_as_the_deadlines_say(self, seconds: float) -> None:
        """Sleep for what wait() says, and no longer than `seconds` altogether, as a loop does."""
        until = self.now + seconds
        while True:
            wait = self.deadlines.wait(self.now)
            assert (wait is None) == (not self.model)
            if wait is None or self.now + wait > until:
                self.now = until
                self.take_what_is_due(on_time=True)
                return
            assert wait >= 0
            self.now += max(wait, CLOCK_TICK_S)
            self.take_what_is_due(on_time=True)

    @rule(seconds=st.floats(0, 10))
    def be_away_for_a_while(self, seconds: float) -> None:
        self.now += seconds
        self.take_what_is_due(on_time=False)

    def take_what_is_due(self, *, on_time: bool) -> None:
        due = self.deadlines.due(self.now)
        times = [self.model.pop(item) for item in due]
        for at in times:
            assert at < self.now, "early"
            assert not on_time or self.now - at <= LATEST_S, "late"
        assert all(after - before > -LATEST_S / 2 for before, after in itertools.pairwise(times)), "disorder"
        left_behind = [at for at in self.model.values() if at <= self.now - LATEST_S]
        assert not left_behind

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.deadlines) == len(self.model)

    def teardown(self) -> None:
        self.now += 2 * DAY_S
        self.take_what_is_due(on_time=False)
        assert self.model == {}
        assert self.deadlines.wait(self.now) is None
        assert sizes(self.deadlines) == (0, 0)


TestDeadlinesAgainstADict = DeadlinesAgainstADict.TestCase


def sizes(deadlines: Deadlines) -> tuple[int, int]:
    """Return the sizes of the tables within."""
    return len(deadlines._buckets), len(deadlines._times)


@pytest.mark.timeout(60)
def test_a_million_calls_that_complete_leave_nothing_behind() -> None:
    deadlines = Deadlines()
    largest = 0
    for number in range(1_000_000):
        at = number * 0.001 + DAY_S  # a thousand calls a second, each of which may wait a day
        deadlines.add(number, at)
        deadlines.discard(number, at)
        largest = max(largest, *sizes(deadlines))
    assert len(deadlines) == 0
    assert largest < 200


@pytest.mark.timeout(60)
def test_calls_in_flight_take_memory_by_their_number_and_not_by_those_before_them() -> None:
    deadlines = Deadlines()
    in_flight = 100
    times = [number * 0.01 + DAY_S for number in range(200_000)]
    for number, at in enumerate(times):
        deadlines.add(number, at)
        if number >= in_flight:
            deadlines.discard(number - in_flight, times[number - in_flight])
    assert len(deadlines) == in_flight
    assert max(sizes(deadlines)) <= 3 * in_flight + 200
    assert len(deadlines.due(1e9)) == in_flight
    assert sizes(deadlines) == (0, 0)
