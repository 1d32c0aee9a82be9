"""How many calls there are, and how many cores they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.counts import count, step_of
from skywalker.pipeline.jobs.defaults import MINUTE_S, PER_CORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def capacity(calls: DataFrame, per_core: float = PER_CORE, seconds: int = MINUTE_S) -> DataFrame:
    """Return a row for each minute, or step of so many seconds: calls, calls a second, and cores that these need.

    The columns: time, seconds (of the step that lie between the first call of all and the last, both included), calls,
    rate (calls a second), peak (of the busiest second), cores and peak_cores (at `per_core` calls a second each).
    Raises ConfigError if `per_core` is not positive.
    """
    if not per_core > 0:
        raise ConfigError(f"calls a second per core is {per_core:g}; give what a core can do, such as {PER_CORE:,.0f}")
    by_second = calls.groupBy(step_of("time", 1).alias("_second")).agg(count().alias("_calls"))
    steps = by_second.groupBy(step_of("_second", seconds).alias("time")).agg(
        F.sum("_calls").alias("calls"),
        F.max("_calls").cast("double").alias("peak"),
        F.min("_second").alias("_first"),
        F.max("_second").alias("_last"),
    )
    # One row for a step: few enough for one window.
    whole = Window.partitionBy(F.lit(0)).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    begin = F.unix_seconds("time")
    first = F.greatest(begin, F.unix_seconds(F.min("_first").over(whole)))
    last = F.least(begin + (seconds - 1), F.unix_seconds(F.max("_last").over(whole)))
    rate = F.col("calls") / F.col("seconds")
    return (
        steps.withColumn("seconds", last - first + 1)
        .select(
            "time",
            "seconds",
            "calls",
            rate.alias("rate"),
            "peak",
            (rate / per_core).alias("cores"),
            (F.col("peak") / per_core).alias("peak_cores"),
        )
        .orderBy("time")
    )
