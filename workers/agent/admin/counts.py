"""Arithmetic on the cells of metrics: what they are by label, how they grew, and histograms that merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workers.stats.metrics import HISTOGRAM_CELLS, Metric, quantile

Cells = Sequence[int]


def by_label(metric: Metric, cells: Cells) -> dict[str, Any]:
    """Return the numbers of a counter or gauge by the values of its label; with two labels, one within the other."""
    found: dict[str, Any] = {}
    for (first, *rest), (number,) in metric.rows(cells):
        if rest:
            found.setdefault(first, {})[rest[0]] = number
        else:
            found[first] = number
    return found


def total(metric: Metric, cells: Cells) -> int:
    """Return the sum of a counter or gauge over all its labels."""
    return sum(cells[metric.at : metric.end])


def merged(metric: Metric, cells: Cells) -> list[int]:
    """Return a histogram's cells, added up over its labels."""
    return added(row for _, row in metric.rows(cells))


def added(rows: Iterable[Cells]) -> list[int]:
    """Return histograms' cells added up."""
    return [sum(column) for column in zip([0] * HISTOGRAM_CELLS, *rows, strict=True)]


def grown(newer: Cells, older: Cells) -> list[int]:
    """Return what was counted between two readings."""
    return [new - old for new, old in zip(newer, older, strict=True)]


def quantiles(newer: Cells, older: Cells) -> dict[str, float | None]:
    """Return the median and the 99th percentile, in s, of what a histogram counted between two readings."""
    found = grown(newer, older)
    return {"p50": quantile(found, 0.5), "p99": quantile(found, 0.99)}
