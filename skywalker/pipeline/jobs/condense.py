"""Many calls made into few rows that stand for them, which other jobs take as they take calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skywalker.pipeline.jobs.counts import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def condense(calls: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return one row for all calls that are the same in `columns`; `sample` is how many. All other columns are gone."""
    return calls.groupBy(*columns).agg(count().alias("sample"))
