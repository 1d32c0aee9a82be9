"""Why calls met nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import GIVES, MET, count, keys, stepped
from skywalker.pipeline.jobs.defaults import MINUTE_S

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PROBE_US: Final = 1000
"""A call that has waited less when its time was over only asked whether somebody was there."""

CAUSES: Final = {
    "probe": "asked whether somebody was there, and did not wait",
    "nobody-ever": "no call of the other side is recorded of this topic",
    "nobody-then": "the other side came, but not while it waited",
    "cancelled": "its client took it back",
    "client-gone": "its client left",
    "busy": "a limit of the node was reached",
    "draining": "the node was going away",
    "unknown-outcome": "it may have met somebody, and nobody could say so in time",
    "error": "it was refused with anything else",
}


def timeouts(calls: DataFrame, by: Sequence[str] = ("method",), seconds: int = MINUTE_S) -> DataFrame:
    """Return how many calls met nobody, by cause (one of CAUSES) and the groups `by`; the most first.

    The columns: those of the groups, cause, calls, share (of all that met nobody), of_all (of all calls) and topics.
    Raises ConfigError for groups that there are not.
    """
    columns = keys(by)
    cells = (
        stepped(calls, seconds)
        .withColumns({"_cause": _cause(), "_gives": F.col("method").isin(*GIVES)})
        .groupBy(*{**dict.fromkeys(columns), "token": None}, "_gives", "_cause")
        .agg(count().alias("_calls"))
    )
    topic = Window.partitionBy("token")
    both = F.max("_gives").over(topic) != F.min("_gives").over(topic)
    cause = F.when(F.col("_cause") != "nobody", F.col("_cause")).when(both, "nobody-then").otherwise("nobody-ever")
    missed = cells.withColumn("cause", F.when(F.col("_cause").isNotNull(), cause))
    return _shared(missed.withColumnRenamed("_calls", "calls"), columns)


def _shared(missed: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Add up `calls` by `cause`, null for calls that met, and by the columns given: what timeouts() returns."""
    counted = missed.groupBy(*columns, "cause").agg(
        F.sum("calls").alias("calls"), F.count_distinct("token").alias("topics")
    )
    # Sums over what is counted by now, and not a join with them, for which calls would be gone through twice.
    whole = Window.partitionBy(F.lit(0))
    return (
        counted.withColumns(
            {
                "_all": F.sum("calls").over(whole),
                "_missed": F.sum(F.when(F.col("cause").isNotNull(), F.col("calls"))).over(whole),
            }
        )
        .where("cause is not null")
        .select(
            *columns,
            "cause",
            "calls",
            (F.col("calls") / F.col("_missed")).alias("share"),
            (F.col("calls") / F.col("_all")).alias("of_all"),
            "topics",
        )
        .orderBy(F.desc("calls"), "cause", *columns)
    )


def _cause() -> Column:
    outcome = F.col("outcome")
    patient = F.col("wait_us") >= PROBE_US
    return (
        F.when(outcome.isin(*MET), F.lit(None))
        .when(outcome == "timed-out", F.when(patient, "nobody").otherwise("probe"))
        .when(outcome == "gone", "client-gone")
        .when(outcome.isin("cancelled", "busy", "draining", "unknown-outcome"), outcome)
        .otherwise("error")
    )
