"""A ring that is known, asked for the owners of many topics at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import functions as F

from skywalker.arcs import arcs
from skywalker.errors import ConfigError
from skywalker.members import Member, Snapshot
from skywalker.ring import TOKENS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Owners:
    """Who owns which tokens: that of a topic belongs to the biggest of the ring's tokens that is less."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._arcs = [(arc.start, *arc.owner, arc.length / TOKENS) for arc in arcs(snapshot)]

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read what `skywalker ring --json` printed. Raises ConfigError if it is anything else."""
        try:
            said = json.loads(file.read_bytes())
        except OSError as error:
            raise ConfigError(f"cannot read the ring in {file}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{file} is no JSON: {error}") from error
        match said:
            case {"value": {"nodes": [_, *_] as nodes}}:
                members = [Member.parse(node) for node in nodes]
                known = [member for member in members if member is not None]
                if len(known) == len(members):
                    return cls(Snapshot(known))
        raise ConfigError(f"{file} does not hold a ring; write one by: skywalker ring --json > {file}")

    def told(self, counted: DataFrame) -> DataFrame:
        """Return `counted` with owner_node, owner_worker and owner_token of each `token`."""
        import numpy as np

        ring = np.array([arc[0] for arc in self._arcs], dtype=np.int64)

        # Closes over numbers alone, so that workers of a cluster need numpy and pyarrow, and no skywalker.
        def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa

            for batch in batches:
                tokens = batch.column("token").to_numpy()
                # One below the first that is not less; with none less that is the biggest, by way of index -1.
                found = ring[np.searchsorted(ring, tokens, side="left") - 1]
                yield pa.RecordBatch.from_arrays(
                    [*batch.columns, pa.array(found)], names=[*batch.schema.names, "owner_token"]
                )

        schema = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in counted.schema.fields)
        found: Any = counted.mapInArrow(look_up, f"{schema}, owner_token bigint")
        places = self._table(counted.sparkSession).selectExpr(
            "token as owner_token", "node as owner_node", "worker as owner_worker"
        )
        told: DataFrame = found.join(F.broadcast(places), "owner_token")
        return told

    def arcs(self, spark: SparkSession) -> DataFrame:
        """Return the share of the ring of every node, worker and token: level, node, worker, token, arc."""
        nothing = F.lit(None)
        tokens = self._table(spark)
        workers = tokens.groupBy("node", "worker").agg(F.sum("arc").alias("arc"))
        nodes = tokens.groupBy("node").agg(F.sum("arc").alias("arc"))
        return (
            tokens.select(F.lit("token").alias("level"), "node", "worker", "token", "arc")
            .unionByName(workers.withColumns({"level": F.lit("worker"), "token": nothing.cast("bigint")}))
            .unionByName(
                nodes.withColumns(
                    {"level": F.lit("node"), "worker": nothing.cast("int"), "token": nothing.cast("bigint")}
                )
            )
        )

    def _table(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self._arcs, "token bigint, node string, worker int, arc double")
