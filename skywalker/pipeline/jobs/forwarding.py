"""Which calls came in at the wrong worker, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import count, keys
from skywalker.pipeline.jobs.defaults import HOP_COST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def forwarding(calls: DataFrame, by: Sequence[str] = ("worker",), hop_cost: float = HOP_COST) -> DataFrame:
    """Return how many calls were passed on to the owner of their topic, for each of the groups `by`.

    The columns: those of the groups, calls, here, to_sibling (another worker of the node), to_node (another node),
    forwarded (the share of both) and saved: the share of the CPU time that clients would save which go to the owner at
    once, where passing a call on takes `hop_cost` times what answering it does. Raises ConfigError for groups that
    there are not.
    """
    columns = keys(by)
    route = F.col("route")
    counted = calls.groupBy(*columns).agg(
        count().alias("calls"),
        count(route == "here").alias("here"),
        count(route == "sibling").alias("to_sibling"),
        count(route == "node").alias("to_node"),
    )
    passed = F.col("to_sibling") + F.col("to_node")
    return (
        counted.where("calls is not null")
        .withColumn("forwarded", passed / F.col("calls"))
        .withColumn("saved", passed * hop_cost / (F.col("calls") + passed * hop_cost))
        .orderBy(*columns)
    )
