"""Tables of lives: each pair of a state and an event leads to one state, or raises and changes nothing."""

from __future__ import annotations

import pytest

from tests.lives import LIVES
from workers.engine.life import Life, Unlisted


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_every_pair_is_listed_or_raises(life: Life) -> None:
    listed = {(state, event): after for state, event, after in life.ways()}
    for state in range(len(life.states)):
        for event in range(len(life.events)):
            if (state, event) in listed:
                assert life.after(state, event) == listed[state, event]
            else:
                with pytest.raises(Unlisted, match=life.name):
                    life.after(state, event)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_every_state_is_reached_and_every_event_happens(life: Life) -> None:
    reached, grows = {0}, True
    while grows:
        more = {after for state, _, after in life.ways() if state in reached} - reached
        grows, reached = bool(more), reached | more
    assert reached == set(range(len(life.states)))
    assert {event for _, event, _ in life.ways()} == set(range(len(life.events)))


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_every_state_can_come_to_an_end(life: Life) -> None:
    ends = set(range(len(life.states))) - {state for state, _, after in life.ways() if after != state}
    assert ends
    grows = True
    while grows:
        more = {state for state, _, after in life.ways() if after in ends} - ends
        grows, ends = bool(more), ends | more
    assert ends == set(range(len(life.states)))
