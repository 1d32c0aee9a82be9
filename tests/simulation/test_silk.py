"""Runs of Silk: fresh seeds, and the same seed again."""

from __future__ import annotations

import pytest

from tests.simulation.silk_run import run
from tests.simulation.test_simulation import FRESH_S, ran

SEEDS = round(FRESH_S / 3)
"""Fresh ones: they take about half a second of one core each."""


def test_the_same_seed_gives_the_same_run() -> None:
    told = {ran("tests.simulation.silk_run", "--seed", "1", seconds=60, PYTHONHASHSEED=each) for each in "12"}
    assert len(told) == 1


def test_much_is_said_and_some_are_given_up() -> None:
    results = [run(seed) for seed in range(3)]
    assert sum(each.answered for each in results) > 300
    assert sum(each.failures for each in results) > 3


@pytest.mark.timeout(300)
def test_what_is_promised_of_silk_holds() -> None:
    ran("tests.simulation.silk_run", "--seeds", str(SEEDS), seconds=240)
