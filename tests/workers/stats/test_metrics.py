"""The table of what a node counts: each metric has its cells, its names, and is read back from where it was written."""

from __future__ import annotations

import math
import random

import pytest

from workers.stats import metrics
from workers.stats.metrics import (
    AGENT_BEAT,
    BUCKETS,
    HISTOGRAM_CELLS,
    NODE_CELLS,
    NODE_METRICS,
    STATE,
    UNKNOWN,
    WORKER_CELLS,
    WORKER_METRICS,
    Kind,
    Metric,
    grown,
    quantile,
    quantiles,
)

EVERY = [*WORKER_METRICS, *NODE_METRICS]


@pytest.mark.parametrize(
    ("table", "first", "end"), [(WORKER_METRICS, STATE + 1, WORKER_CELLS), (NODE_METRICS, AGENT_BEAT + 1, NODE_CELLS)]
)
def test_each_cell_belongs_to_one_metric(table: tuple[Metric, ...], first: int, end: int) -> None:
    cells = [at for metric in table for at in range(metric.at, metric.end)]
    assert cells == [*range(first, end)]


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
def test_each_combination_of_labels_is_read_from_its_own_cells(metric: Metric) -> None:
    cells = list(range(metric.end))
    rows = list(metric.rows(cells))
    assert len({labels for labels, _ in rows}) == len(rows)
    assert all(UNKNOWN not in labels for labels, _ in rows)
    read = [at for _, values in rows for at in values]
    assert len(set(read)) == len(read)
    assert all(metric.at <= at < metric.end for at in read)
    assert all(len(values) == metric.width for _, values in rows)
    assert all(len(labels) == len(metric.labels) for labels, _ in rows)
    known = math.prod(sum(value != UNKNOWN for value in values) for _, values in metric.labels)
    assert len(rows) == known


# Quantiles.


def histogram(times_us: list[float]) -> list[int]:
    """Return the buckets as the table says they are: bucket k counts times below 2**k µs."""
    buckets = [0] * HISTOGRAM_CELLS
    for each in times_us:
        buckets[min(BUCKETS - 1, next(k for k in range(BUCKETS + 64) if each < 2**k))] += 1
    return buckets


@pytest.mark.parametrize("q", [0.0, 0.01, 0.5, 0.9, 0.99, 1.0])
def test_a_quantile_is_within_the_bucket_of_the_true_one(q: float) -> None:
    dice = random.Random(7)
    times = sorted(dice.lognormvariate(6, 3) for _ in range(5000))
    found = quantile(histogram(times), q)
    assert found is not None
    true = times[min(len(times) - 1, max(0, math.ceil(q * len(times)) - 1))]
    assert true / 2 - 1 <= found * 1e6 <= true * 2 + 1


def numbers(of: object) -> list[int]:
    """Return the numbers in maps, and in maps in them."""
    return [number for each in of.values() for number in numbers(each)] if isinstance(of, dict) else [int(str(of))]


@pytest.mark.parametrize("metric", [each for each in EVERY if each.labels and each.kind is not Kind.HISTOGRAM])
def test_numbers_by_label_are_those_of_the_rows_and_make_the_total(metric: Metric) -> None:
    cells = [0] * metric.end
    for at, (labels, _) in enumerate(metric.rows(cells)):
        cells[metric.cell(*labels)] = 3**at % 1009
    by_label = metric.by_label(cells)
    assert numbers(by_label) == [number for _, (number,) in metric.rows(cells)]
    assert metric.total(cells) == sum(numbers(by_label))
    for labels, (number,) in metric.rows(cells):
        found = by_label
        for label in labels:
            found = found[label]
        assert found == number


def test_a_histogram_is_merged_over_its_labels_and_what_was_counted_meanwhile_has_its_own_quantiles() -> None:
    dice = random.Random(9)
    older = [dice.randrange(100) for _ in range(metrics.WAIT.end)]
    newer = [*older]
    meanwhile = histogram([1000.0] * 50)
    for at, count in enumerate(meanwhile, metrics.WAIT.cell("recv")):
        newer[at] += count
    before, after = metrics.WAIT.merged(older), metrics.WAIT.merged(newer)
    assert sum(before) == sum(sum(row) for _, row in metrics.WAIT.rows(older))
    assert grown(after, before) == meanwhile
    assert quantiles(after, before) == {"p50": quantile(meanwhile, 0.5), "p99": quantile(meanwhile, 0.99)}
