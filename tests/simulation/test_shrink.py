"""Plans as data, and the smallest part of one that still fails."""

from __future__ import annotations

import pytest

from tests.simulation.plan import Plan, plan
from tests.simulation.shrink import Shrinker


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_is_the_same_after_it_was_written_down(seed: int) -> None:
    assert Plan.of(plan(seed).text()) == plan(seed)
    assert plan(seed) != plan(seed + 1)


def has_both(smaller: Plan) -> bool:
    """Fail where one client listens for long, another sends, and something happens after eight seconds."""
    said = {word.method for client in smaller.clients for _, words in client.spurts for word in words}
    return {":send!", ":take!"} <= said and any(fault.at > 8 for fault in smaller.faults)


def test_what_a_failure_does_not_need_is_left_out() -> None:
    smallest = Shrinker(plan(3), has_both, 1000.0).shrink()
    assert smallest.words() == 2
    assert len(smallest.clients) in (1, 2)
    assert len(smallest.faults) == 1
    assert (smallest.nodes, smallest.workers, smallest.topics) == (1, 1, 1)
    assert has_both(smallest)


def test_what_only_some_luck_shows_is_shrunk_too() -> None:
    smallest = Shrinker(plan(3), lambda smaller: smaller.seed % 2 == 1 and has_both(smaller), 1000.0).shrink()
    assert smallest.words() == 2


def test_it_ends_when_its_time_is_over() -> None:
    now = 0.0

    def slow(smaller: Plan) -> bool:
        nonlocal now
        now += 1.0
        return has_both(smaller)

    whole = plan(3)
    part = Shrinker(whole, slow, 20.0, lambda: now).shrink()
    assert now <= 21.0
    assert has_both(part)
    assert part.words() < whole.words()
