"""The table of a call's life in the core is what is told of it."""

from __future__ import annotations

from tests.lives import CALL
from tests.workers.core import _parts
from workers.engine.life import NOWHERE


def test_a_call_goes_the_ways_that_are_told() -> None:
    ways = {(state, event): after for state, event, after in CALL.ways()}
    told = [
        [ways.get((state, event), NOWHERE) for event in range(len(CALL.events))] for state in range(len(CALL.states))
    ]
    assert _parts.life() == told
