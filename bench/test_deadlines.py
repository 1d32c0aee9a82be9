"""Micro benchmark of deadlines: what a call that completes costs besides."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from skywalker.deadlines import Deadlines

BATCH = 1000
"""Calls of one round: enough that the loop around them does not count."""


@pytest.mark.parametrize("waiting", [0, 100_000])
def test_a_call_that_completes_adds_and_discards_its_deadline(benchmark: BenchmarkFixture, waiting: int) -> None:
    deadlines = Deadlines()
    for number in range(waiting):
        deadlines.add(-number, 10.0 + number * 0.001)
    times = [30.0 + number * 0.0001 for number in range(BATCH)]

    def complete() -> None:
        for number, at in enumerate(times, 1):
            deadlines.add(number, at)
            deadlines.discard(number, at)

    benchmark(complete)
    assert len(deadlines) == waiting
