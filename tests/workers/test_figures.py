"""The table of what a node counts: each figure has its cells, its names, and is read back from where it was written."""

from __future__ import annotations

import math
import random
import re

import pytest

from workers.stats import figures
from workers.stats.figures import (
    AGENT_BEAT,
    BUCKETS,
    HISTOGRAM_CELLS,
    NODE_CELLS,
    NODE_FIGURES,
    STATE,
    UNKNOWN,
    WORKER_CELLS,
    WORKER_FIGURES,
    Figure,
    Kind,
    quantile,
)

EVERY = [*WORKER_FIGURES, *NODE_FIGURES]


@pytest.mark.parametrize(
    ("table", "first", "end"), [(WORKER_FIGURES, STATE + 1, WORKER_CELLS), (NODE_FIGURES, AGENT_BEAT + 1, NODE_CELLS)]
)
def test_each_cell_belongs_to_one_figure(table: tuple[Figure, ...], first: int, end: int) -> None:
    cells = [at for figure in table for at in range(figure.at, figure.end)]
    assert cells == [*range(first, end)]


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.name)
def test_each_combination_of_labels_is_read_from_its_own_cells(figure: Figure) -> None:
    cells = list(range(figure.end))
    rows = list(figure.rows(cells))
    assert len({labels for labels, _ in rows}) == len(rows)
    assert all(UNKNOWN not in labels for labels, _ in rows)
    read = [at for _, values in rows for at in values]
    assert len(set(read)) == len(read)
    assert all(figure.at <= at < figure.end for at in read)
    assert all(len(values) == figure.width for _, values in rows)
    assert all(len(labels) == len(figure.labels) for labels, _ in rows)
    known = math.prod(sum(value != UNKNOWN for value in values) for _, values in figure.labels)
    assert len(rows) == known


@pytest.mark.parametrize("figure", EVERY, ids=lambda figure: figure.name)
def test_names_are_those_of_a_metric(figure: Figure) -> None:
    assert re.fullmatch(r"[a-z][a-z_]*", figure.name)
    assert not figure.name.endswith(("_total", "_count", "_sum", "_bucket"))
    assert figure.help
    for label, values in figure.labels:
        assert re.fullmatch(r"[a-z]+", label)
        assert label not in ("worker", "le")
        assert len(set(values)) == len(values)
    if figure.kind is Kind.HISTOGRAM:
        assert figure.width == HISTOGRAM_CELLS
        assert figure.name.endswith("_seconds")


def test_no_two_figures_have_one_name() -> None:
    names = [figure.name for figure in EVERY]
    assert len(set(names)) == len(names)


def test_the_second_cell_of_a_row_is_that_of_the_last_labels_next_value() -> None:
    figure = figures.CALLS
    (_, methods), (_, outcomes) = figure.labels
    cells = [0] * figure.end
    cells[figure.at + methods.index("take") * len(outcomes) + outcomes.index("timed-out")] = 9
    assert {labels: values[0] for labels, values in figure.rows(cells) if values[0]} == {("take", "timed-out"): 9}


# Quantiles.


def histogram(times_us: list[float]) -> list[int]:
    """Return the buckets as the table says they are: bucket k counts times below 2**k µs."""
    buckets = [0] * HISTOGRAM_CELLS
    for each in times_us:
        buckets[min(BUCKETS - 1, next(k for k in range(BUCKETS + 64) if each < 2**k))] += 1
    return buckets


def test_nothing_has_no_quantile() -> None:
    assert quantile([0] * HISTOGRAM_CELLS, 0.5) is None


def test_the_sum_is_no_bucket() -> None:
    assert quantile([*[0] * BUCKETS, 10**9], 0.5) is None


@pytest.mark.parametrize("q", [0.0, 0.01, 0.5, 0.9, 0.99, 1.0])
def test_a_quantile_is_within_the_bucket_of_the_true_one(q: float) -> None:
    dice = random.Random(7)
    times = sorted(dice.lognormvariate(6, 3) for _ in range(5000))
    found = quantile(histogram(times), q)
    assert found is not None
    true = times[min(len(times) - 1, max(0, math.ceil(q * len(times)) - 1))]
    assert true / 2 - 1 <= found * 1e6 <= true * 2 + 1


def test_quantiles_grow_with_q() -> None:
    dice = random.Random(8)
    buckets = histogram([dice.expovariate(1 / 300) for _ in range(300)])
    found = [quantile(buckets, q / 100) for q in range(101)]
    assert found == sorted(found, key=lambda each: each or 0.0)


def test_times_longer_than_the_last_bucket_have_a_quantile_all_the_same() -> None:
    assert quantile(histogram([2.0**60] * 3), 0.5) is not None
