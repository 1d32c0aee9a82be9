"""Calls that should have met, and did not: the sides of one topic that waited at the same time, and both missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import TAKES, named
from skywalker.pipeline.jobs.defaults import OVERLAP_US

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MISSED: Final = ("timed-out", "cancelled", "gone", "draining")
"""How a call ends that waited for nothing."""

_TOLD: Final = ("node", "worker", "ring", "outcome", "wait_us", "time")


def unmatched(calls: DataFrame, names: DataFrame | None = None, overlap_us: int = OVERLAP_US) -> DataFrame:
    """Return a row for each recv or take that missed a send: both waited, for `overlap_us` together, and met nobody.

    A send may stand in several rows: each receiver is shown one that it should have met. The columns: token, topic,
    overlap_us, sample, then node, worker, ring, outcome, wait_us and time (when it ended) of both, with recv_ and send_
    in front. Of a sampled journal only the pairs are seen whose calls both are.
    """
    end = F.unix_micros("time")
    waited = calls.where(
        F.col("method").isin("send", *TAKES) & F.col("outcome").isin(*MISSED) & (F.col("wait_us") >= overlap_us)
    ).select(
        "token",
        "sample",
        F.col("method").isin(*TAKES).alias("_takes"),
        (end - F.col("wait_us")).alias("_start"),
        end.alias("_end"),
        F.struct(*_TOLD).alias("_call"),
    )
    # Of all that a receiver should have met, it is enough to look at two: the send that came before it and stayed the
    # longest, and the first that came after it. So rows are sorted once, and hot topics make no product of all pairs.
    topic = Window.partitionBy("token")
    # Both look back, the one in reversed order: Spark goes through a window that looks ahead anew for every row.
    so_far = (Window.unboundedPreceding, Window.currentRow)
    before = topic.orderBy("_start", "_takes").rowsBetween(*so_far)
    after = topic.orderBy(F.desc("_start"), F.desc("_takes")).rowsBetween(*so_far)
    send = F.when(~F.col("_takes"), F.struct("_end", "_start", "_call"))
    seen = waited.withColumns(
        {"_before": F.max(send).over(before), "_after": F.last(send, ignorenulls=True).over(after)}
    )
    both = seen.where("_takes").withColumns({"_with": _overlap("_before"), "_then": _overlap("_after")})
    # A comparison with nothing is not true.
    sent = F.when(F.col("_then").isNull() | (F.col("_with") >= F.col("_then")), F.col("_before")).otherwise(
        F.col("_after")
    )
    pairs = both.select(
        "token",
        F.greatest("_with", "_then").alias("overlap_us"),
        "sample",
        *_told("recv", F.col("_call")),
        *_told("send", sent["_call"]),
    )
    return named(pairs.where(F.col("overlap_us") >= overlap_us), names)


def _overlap(send: str) -> Column:
    """Return how long a receiver waited while a send did, in µs: less than 0 if there was time between them."""
    last, first = F.least("_end", F.col(send)["_end"]), F.greatest("_start", F.col(send)["_start"])
    return F.when(F.col(send).isNotNull(), last - first)


def _told(side: str, call: Column) -> list[Column]:
    return [call[name].alias(f"{side}_{name}") for name in _TOLD]
