"""Some thousand moves: `python -m tests.simulation.moves` has a million."""

from __future__ import annotations

from tests.simulation.moves import Sum, tried


def test_nothing_is_lost_doubled_or_out_of_turn_though_workers_are_killed_in_the_middle_of_a_move() -> None:
    total = Sum()
    for seed in range(4):
        _, what, wrong = tried(seed)
        assert not wrong
        total.add(what)
    assert total.moves > 2000
    assert total.kills > 40
