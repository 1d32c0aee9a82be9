"""Who has how much of the work, and how much it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from skywalker.pipeline.jobs.counts import count
from skywalker.pipeline.jobs.owners import NO_OWNERS, Owners

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def balance(calls: DataFrame, owners: Owners = NO_OWNERS) -> DataFrame:
    """Return how much of the calls each node and worker owns and took in, and each token of the rings that are known.

    The columns: level (node, worker or token), node, worker (null for tokens, which are a node's), token, owned (calls
    of topics that it owns), share, arc (its part of the ring, of several on average over the calls; null where no ring
    is known), fair (the share if all were equal), load (share over fair), arrived (calls that came in there, null for
    tokens) and arrived_share.

    Who owns what is told by `owners`, as far as they know the ring that a call was made in. Else it is what the records
    say: who took in a call knows whether it is the owner itself, and a call that was passed on has the owner that other
    calls of its topic show. Where there are none, the owner is unknown: a row without node, or without worker, and
    without a fair share.
    """
    place, whose = ("node", "worker"), ("owner_node", "owner_worker", "owner_token")
    told = owners.told(calls.where(owners.known())).groupBy("ring", *whose, *place).agg(count().alias("calls"))
    places = calls.where(~owners.known()).groupBy("ring", "token", "route", *place).agg(count().alias("calls"))
    shown = _shown(places).groupBy("ring", *whose, *place).agg(F.sum("calls").alias("calls"))
    parts = _parts(told.unionByName(shown), owners)
    return _shares(_levels(parts)).orderBy("level", "node", "worker", "token")


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
    return found.withColumns(
        {
            "owner_node": F.col("_owner")["node"],
            "owner_worker": F.col("_owner")["worker"],
            "owner_token": F.lit(None).cast("bigint"),
        }
    )


def _parts(flows: DataFrame, owners: Owners) -> DataFrame:
    """Return what places have of the calls and of the rings: node, worker, token, owned, arrived and arc."""
    # Both in one table, so that calls are gone through once.
    rows = flows.unionByName(owners.arcs(flows.sparkSession), allowMissingColumns=True)
    # An arc counts as much as its ring has of the calls whose ring is known.
    of_known = F.sum(F.when(F.col("owner_token").isNotNull(), F.col("calls")))
    of_ring, of_all = (of_known.over(Window.partitionBy(by)) for by in ("ring", F.lit(0)))
    weight = F.coalesce(of_ring / of_all, F.when(of_all.isNull(), 1 / max(1, owners.count)))
    return (
        rows.withColumn("arc", F.col("arc") * weight)
        .selectExpr(
            "stack(2, owner_node, owner_worker, owner_token, calls, null, arc, node, worker, null, null, calls, null)"
            " as (node, worker, token, owned, arrived, arc)"
        )
        .where("owned > 0 or arrived > 0 or arc > 0")
    )


def _levels(parts: DataFrame) -> DataFrame:
    """Add up the parts of each node, of each worker and of each token."""
    return (
        parts.selectExpr(
            "stack(3, 'node', null, null, 'worker', worker, null, nvl2(token, 'token', null), null, token)"
            " as (level, worker, token)",
            *("node", "owned", "arrived", "arc"),
        )
        .where("level is not null")
        .groupBy("level", "node", "worker", "token")
        .agg(
            F.coalesce(F.sum("owned"), F.lit(0)).alias("owned"),
            F.sum("arrived").alias("_arrived"),
            F.sum("arc").alias("arc"),
        )
    )


def _shares(places: DataFrame) -> DataFrame:
    level = Window.partitionBy("level")
    known = F.col("node").isNotNull() & (F.col("worker").isNotNull() | (F.col("level") != "worker"))
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
