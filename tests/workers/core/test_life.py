"""The core's own table of a call's life is that of workers.calls.states."""

from __future__ import annotations

from tests.workers.core import _parts
from workers.calls.states import LIFE
from workers.engine.life import Unlisted

NOWHERE = 255


def test_a_call_goes_the_same_ways() -> None:
    ways = _parts.life()
    assert len(ways) == len(LIFE.states)
    for state, after in enumerate(ways):
        assert len(after) == len(LIFE.events)
        for event, found in enumerate(after):
            try:
                wanted = LIFE.after(state, event)
            except Unlisted:
                wanted = NOWHERE
            assert found == wanted, (LIFE.states[state], LIFE.events[event])
