"""Some kills under load: `python -m tests.simulation.kills` has 1,000."""

from __future__ import annotations

from tests.simulation.kills import MOST_UNKNOWN, tried


def test_nobody_is_told_what_is_not_so_and_few_that_nobody_knows() -> None:
    kills = unknown = 0
    for seed in range(3):
        _, what, wrong = tried(seed)
        assert not wrong
        assert what.met > 100 * what.kills
        kills, unknown = kills + what.kills, unknown + what.unknown
    assert kills >= 50
    assert unknown <= MOST_UNKNOWN * kills
