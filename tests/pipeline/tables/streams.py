"""Streams that read topics, and a sink for them, in tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skywalker.clients.blocking.client import Client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SPARK_S = 30.0
"""Seconds for what Spark does in one, on a machine that has other things to do."""


class Batches:
    """A sink that keeps the ids of each batch, and the batch that comes again only once."""

    def __init__(self) -> None:
        self.ids: dict[int, list[int]] = {}

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.ids[number] = sorted(row.id for row in frame.collect())

    @property
    def all(self) -> list[int]:
        """The ids of all batches, those that came twice too."""
        return sorted(id for ids in self.ids.values() for id in ids)


@contextlib.contextmanager
def running(
    spark: SparkSession, read: dict[str, Any], sink: Batches, checkpoint: Path, **trigger: bool
) -> Iterator[StreamingQuery]:
    frame = spark.readStream.format("skywalker").options(**read).schema("id BIGINT").load()
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query = (writer.trigger(**trigger) if trigger else writer).start()
    try:
        yield query
    finally:
        query.stop()


def send_all(client: Client, topic: str, ids: range) -> list[Any]:
    return [client.begin("send", topic, {"id": id}, timeout=600) for id in ids]
