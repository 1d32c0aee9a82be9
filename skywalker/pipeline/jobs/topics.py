"""What the calls are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import MET, TAKES, count, forwarded, named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def topics(calls: DataFrame, names: DataFrame | None = None, most: int | None = None) -> DataFrame:
    """Return a row for each topic, the hottest first: its calls, its share of all, and what became of them.

    `most` limits the topics. The columns: token, topic (null if nobody wrote its name down), calls, share, sends,
    receives (recv and take), publishes, met, timed_out, forwarded.
    """
    method, outcome = F.col("method"), F.col("outcome")
    counted = calls.groupBy("token").agg(
        count().alias("calls"),
        count(method == "send").alias("sends"),
        count(method.isin(*TAKES)).alias("receives"),
        count(method == "publish").alias("publishes"),
        count(outcome.isin(*MET)).alias("met"),
        count(outcome == "timed-out").alias("timed_out"),
        count(forwarded()).alias("forwarded"),
    )
    # The sum of all comes in as a table of one row: a window over all topics would gather them in one place. It is
    # summed up from one column of the calls, and not from the topics, which would be counted twice.
    total = calls.agg(count().alias("_all"))
    shares = counted.crossJoin(F.broadcast(total)).withColumn("share", F.col("calls") / F.col("_all"))
    first = shares.select("token", "calls", "share", *counted.columns[2:])
    order = [F.desc("calls"), F.asc("token")]
    if most is not None:
        first = first.orderBy(*order).limit(most)
    return named(first, names).orderBy(*order)
