"""Where a worker is between its first moments and its end, whatever happens to it in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.one_worker import OneWorker
from workers.calls.worker_states import LIFE, Event, Standing, State
from workers.engine.life import Unlisted

FACTS = ("opening", "draining", "node_drains", "replaced", "leaving")


def facts(standing: Standing) -> dict[str, bool]:
    return {fact: bool(getattr(standing, fact)) for fact in FACTS}


def lived(events: list[Event]) -> Standing:
    standing = Standing()
    for event in events:
        try:
            before, known = standing.state, facts(standing)
            standing.happened(event)
        except Unlisted:
            assert (standing.state, facts(standing)) == (before, known)
    return standing


def test_states_and_events_are_numbered_as_the_table_has_them() -> None:
    assert [state.name.lower() for state in State] == [name.replace(" ", "_") for name, _ in LIFE.states]
    assert [event.name.lower() for event in Event] == [name for name, _ in LIFE.events]


@given(st.lists(st.sampled_from(Event)))
def test_what_others_ask_follows_from_what_has_happened(events: list[Event]) -> None:
    standing = lived(events)
    match standing.state:
        case State.OPENING:
            assert facts(standing) == {**dict.fromkeys(FACTS, False), "opening": True}
        case State.SERVING:
            assert not any(facts(standing).values())
        case State.DRAINING_ALONE:
            assert standing.draining
            assert not (standing.node_drains)
            assert not (standing.replaced)
        case State.DRAINING_WITH_NODE:
            assert standing.draining
            assert standing.node_drains
        case State.REPLACED:
            assert standing.draining
            assert standing.replaced
            assert not standing.node_drains
        case State.IDLE:
            assert standing.draining
            assert standing.node_drains or standing.replaced
    assert standing.leaving == (standing.state in (State.LEAVING, State.CLOSING, State.ENDED))
    assert standing.draining or not (standing.node_drains or standing.replaced)


@given(st.lists(st.sampled_from(Event)), st.lists(st.sampled_from(Event)))
def test_what_has_become_true_stays_so_and_a_worker_opens_at_most_once(first: list[Event], then: list[Event]) -> None:
    before, after = lived(first), lived(first + then)
    assert before.opening or not after.opening
    assert all(getattr(after, fact) for fact in FACTS[1:] if getattr(before, fact))


@given(st.lists(st.sampled_from(Event)))
def test_a_worker_that_is_told_to_stop_comes_to_its_end_whatever_happened_before(events: list[Event]) -> None:
    standing = lived([*events, Event.STOPPED, Event.DECIDED, Event.READ])
    assert standing.state is State.ENDED


def test_nobody_else_changes_what_a_worker_is_taken_for() -> None:
    worker = OneWorker()
    try:
        with pytest.raises(Unlisted, match="a worker that is serving cannot be read"):
            worker.core.standing.happened(Event.READ)
        worker.core.leave()
        with pytest.raises(Unlisted, match="a worker that is leaving cannot be stopped"):
            worker.core.leave()
    finally:
        worker.close()
