"""Every state of a worker against every event: what the table lists leads on, what it does not is an error."""

from __future__ import annotations

import itertools

import pytest

from workers.process.lifecycle import NEXT, Event, ImpossibleEvent, State, after
from workers.stats import metrics


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_a_pair_leads_where_the_table_says_or_is_impossible(state: State, event: Event) -> None:
    if (state, event) in NEXT:
        assert after(state, event) is NEXT[state, event]
    else:
        with pytest.raises(ImpossibleEvent, match=f"{state.value} cannot {event.value}"):
            after(state, event)


def test_figures_name_every_state() -> None:
    assert tuple(state.value for state in State) == metrics.STATES


def test_a_worker_may_die_in_any_state_but_that_of_being_gone() -> None:
    assert {state for state in State if NEXT.get((state, Event.EXIT)) is State.GONE} == set(State) - {State.GONE}


def test_nothing_happens_to_a_worker_that_is_gone_but_that_another_takes_its_slot() -> None:
    assert {NEXT[pair] for pair in NEXT if pair[0] is State.GONE} <= {State.STARTING}


def test_every_worker_that_lives_may_be_told_to_stop_and_nothing_but_its_end_follows() -> None:
    assert all((state, Event.STOP) in NEXT for state in set(State) - {State.GONE, State.STOPPING})
    followers = {NEXT[pair] for pair in NEXT if pair[0] is State.STOPPING}
    assert followers == {State.STOPPING, State.GONE}


def reached_from(start: State, without: frozenset[State] = frozenset()) -> set[State]:
    """Return all states that may follow, at any distance, not going through those in `without`."""
    reached = {start}
    while more := {NEXT[pair] for pair in NEXT if pair[0] in reached - without} - reached:
        reached |= more
    return reached


def test_every_state_is_reached_from_the_first() -> None:
    assert reached_from(State.STARTING) == set(State)


def test_a_worker_that_drains_never_serves_again() -> None:
    assert State.SERVING not in reached_from(State.DRAINING, without=frozenset({State.GONE}))
