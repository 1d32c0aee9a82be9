"""The life of a worker's process as the supervisor sees it, and that of a node: what the tables promise."""

from __future__ import annotations

from workers.calls import worker_states
from workers.engine.life import Life
from workers.process import slot, supervisor
from workers.process.slot import LIFE, Event, State
from workers.stats import metrics

NEXT = {(state, event): after for state, event, after in LIFE.ways()}


def reached_from(life: Life, start: int) -> set[int]:
    """Return all states that may follow, at any distance."""
    reached = {start}
    while more := {after for state, _, after in life.ways() if state in reached} - reached:
        reached |= more
    return reached


def test_states_and_events_are_numbered_as_the_tables_have_them() -> None:
    for module in (slot, supervisor, worker_states):
        named = [name.replace(" ", "_") for name, _ in module.LIFE.states]
        assert [state.name.lower() for state in module.State] == named
        assert [event.name.lower() for event in module.Event] == [name for name, _ in module.LIFE.events]


def test_figures_name_every_state() -> None:
    assert tuple(name for name, _ in LIFE.states) == metrics.STATES


def test_a_worker_may_die_in_any_state_but_that_of_being_gone() -> None:
    assert {state for state in State if NEXT.get((state, Event.REAPED)) == State.GONE} == set(State) - {State.GONE}


def test_every_worker_that_lives_may_be_told_to_stop_and_nothing_but_its_end_follows() -> None:
    assert all((state, Event.STOPPED) in NEXT for state in set(State) - {State.GONE, State.STOPPING})
    assert reached_from(LIFE, State.STOPPING) == {State.STOPPING, State.GONE}


def test_a_worker_that_drains_never_serves_again() -> None:
    assert State.SERVING not in reached_from(LIFE, State.DRAINING)


def test_a_node_that_is_told_to_end_never_serves_again_and_can_be_told_so_in_every_state_before() -> None:
    before, after = set(supervisor.State), reached_from(supervisor.LIFE, supervisor.State.HIDING)
    before -= after
    assert supervisor.State.SERVING in before
    told = {state for state, event, _ in supervisor.LIFE.ways() if event == supervisor.Event.DRAINED}
    assert told == before
