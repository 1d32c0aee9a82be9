"""A stream from a journal whose batches a test can look at, stop and break."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skywalker.pipeline.journals.source import FORMAT
from tests.helpers import time_factor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Stream:
    """A stream into memory, by batch: what came in each when it was made last."""

    def __init__(self, spark: SparkSession, journal: Path, checkpoint: Path, **options: Any) -> None:
        self.batches: dict[int, list[int]] = {}  # connections, by which tests number records
        self.rows: dict[int, list[Row]] = {}
        self.break_down = threading.Event()
        reader = (
            spark.readStream.format(FORMAT).schema("token BIGINT, connection BIGINT, wait_us BIGINT").options(**options)
        )
        self._frame = reader.load(str(journal))
        self._checkpoint = checkpoint

    @property
    def numbers(self) -> list[int]:
        return [number for batch in self.batches.values() for number in batch]

    @contextmanager
    def running(self, **trigger: Any) -> Iterator[StreamingQuery]:
        writer = self._frame.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._checkpoint))
        query = writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()
        try:
            yield query
        finally:
            query.stop()

    def drain(self) -> None:
        """Read all that is there."""
        with self.running(availableNow=True) as query:
            assert query.awaitTermination(60 * time_factor())

    def _take(self, frame: DataFrame, batch: int) -> None:
        self.rows[batch] = frame.collect()
        self.batches[batch] = [row.connection for row in self.rows[batch]]
        if self.break_down.is_set():
            raise RuntimeError("the sink broke down")
