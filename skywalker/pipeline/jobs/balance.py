"""Who has how much of the work, and how much it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import count
from skywalker.pipeline.jobs.owners import Owners

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def balance(calls: DataFrame, owners: Owners | None = None) -> DataFrame:
    """Return how much of the calls each node and worker owns and took in; with `owners`, each token of the ring, too.

    The columns: level (node, worker or token), node, worker, token, owned (calls of topics that it owns), share, arc
    (its share of the ring; null without `owners`), fair (the share if all were equal), load (share over fair), arrived
    (calls that came in there, null for tokens) and arrived_share.

    With `owners`, calls are told by that ring, whichever they were made in. Without, by what the records say: who took
    in a call knows whether it is the owner itself, and a call that was passed on has the owner that other calls of its
    topic show. Where there are none, the owner is unknown: a row without node, or without worker, and without a fair
    share.
    """
    places = calls.groupBy("ring", "token", "route", "node", "worker").agg(count().alias("calls"))
    told = owners.told(places) if owners is not None else _shown(places)
    owned, arrived = _by_place(told, "owner_node", "owner_worker"), _by_place(places, "node", "worker")
    if owners is not None:
        owned = owned.unionByName(
            told.groupBy(
                F.lit("token").alias("level"),
                F.col("owner_node").alias("node"),
                F.col("owner_worker").alias("worker"),
                F.col("owner_token").alias("token"),
            ).agg(F.sum("calls").alias("calls"))
        )
    both = _together(owned, arrived, owners)
    return _shares(both).orderBy("level", "node", "worker", "token")


def _shown(places: DataFrame) -> DataFrame:
    """Add owner_node and owner_worker as records show them: null where none does."""
    here = F.col("route") == "here"
    place = F.struct("node", "worker")
    topic = Window.partitionBy("ring", "token")
    at_node = Window.partitionBy("ring", "token", "node")
    sibling = F.max(F.when(here, F.col("worker"))).over(at_node)
    # Nodes apart may both own a topic: they follow no ring, or the same name of one. So the node itself is asked first.
    owner = (
        F.when(here, place)
        .when(F.col("route") == "sibling", F.struct("node", sibling.alias("worker")))
        .otherwise(F.max(F.when(here, place)).over(topic))
    )
    found = places.withColumn("_owner", owner)
    return found.withColumns({"owner_node": F.col("_owner")["node"], "owner_worker": F.col("_owner")["worker"]})


def _by_place(counted: DataFrame, node: str, worker: str) -> DataFrame:
    """Add up `calls` for each node, and for each worker."""
    token = F.lit(None).cast("bigint").alias("token")
    workers = counted.groupBy(F.col(node).alias("node"), F.col(worker).alias("worker")).agg(
        F.sum("calls").alias("calls")
    )
    nodes = workers.groupBy("node").agg(F.sum("calls").alias("calls"))
    return workers.select(F.lit("worker").alias("level"), "node", "worker", token, "calls").unionByName(
        nodes.select(F.lit("node").alias("level"), "node", F.lit(None).cast("int").alias("worker"), token, "calls")
    )


def _together(owned: DataFrame, arrived: DataFrame, owners: Owners | None) -> DataFrame:
    """Return a row for each place: calls of both kinds, and its part of the ring."""
    none = F.lit(None)
    parts = [
        owned.withColumns({"owned": F.col("calls"), "arrived": none.cast("bigint"), "arc": none.cast("double")}),
        arrived.withColumns({"owned": none.cast("bigint"), "arrived": F.col("calls"), "arc": none.cast("double")}),
    ]
    if owners is not None:
        arcs = owners.arcs(owned.sparkSession)
        parts.append(arcs.withColumns({"owned": none.cast("bigint"), "arrived": none.cast("bigint")}))
    columns = ("level", "node", "worker", "token", "owned", "arrived", "arc")
    joined = parts[0].select(*columns)
    for part in parts[1:]:
        joined = joined.unionByName(part.select(*columns))
    return joined.groupBy(*columns[:4]).agg(
        F.coalesce(F.sum("owned"), F.lit(0)).alias("owned"),
        F.sum("arrived").alias("_arrived"),
        F.sum("arc").alias("arc"),
    )


def _shares(places: DataFrame) -> DataFrame:
    level = Window.partitionBy("level")
    known = F.col("node").isNotNull() & (F.col("worker").isNotNull() | (F.col("level") == "node"))
    arrived = F.when(known & (F.col("level") != "token"), F.coalesce("_arrived", F.lit(0)))

    def part(of: Column) -> Column:
        return of / F.nullif(F.sum(of).over(level), F.lit(0))

    return (
        places.withColumns({"share": part(F.col("owned")), "arrived": arrived})
        .withColumn("fair", F.when(known, 1 / F.sum(F.when(known, 1)).over(level)))
        .select(
            *("level", "node", "worker", "token", "owned", "share", "arc", "fair"),
            (F.col("share") / F.col("fair")).alias("load"),
            "arrived",
            part(F.col("arrived")).alias("arrived_share"),
        )
    )
