"""Some real kills under load, and some reloads: `python -m tests.chaos.kills` has more."""

from __future__ import annotations

import pytest

from tests.chaos.kills import run


@pytest.mark.parametrize("workers", [2, 3])
def test_who_is_killed_leaves_nobody_with_an_answer_that_is_not_so(workers: int) -> None:
    tally = run(8, workers, seed=workers)
    assert len(tally.told) > 500
    assert not tally.untrue()
    assert not tally.crashes(), tally.log


def test_who_is_replaced_hands_nothing_out_twice() -> None:
    tally = run(5, 2, seed=1, reloads=True)
    assert len(tally.told) > 500
    assert not tally.untrue()
    assert not tally.crashes(), tally.log
    assert not tally.doubled()
