"""The writing half of the format "skywalker": rows are sent to topics, by every partition over a connection of its own.

What Spark makes of it: a write is done once every row has its outcome. If a task fails, Spark may attempt it again,
and a streaming query that starts again repeats its last batch: then rows are sent again that were taken before.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from skywalker.errors import ConfigError
from skywalker.pipeline.tables.writing import Writing, Written

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"
"""What Spark tells the tasks of a streaming query."""


class TableWriter(DataSourceArrowWriter):
    """Sends the rows of a table."""

    def __init__(self, schema: StructType, options: Mapping[str, str], overwrite: bool = False) -> None:
        """Raises ConfigError for an option, or a column, that is not allowed, and if it is to overwrite."""
        if overwrite:
            raise ConfigError('a topic keeps nothing that could be overwritten; use .mode("append")')
        self._writing = Writing(schema, options)
        self._name = uuid.uuid4().hex  # the same for every attempt of every task of this write

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Written:
        return self._writing.write(iterator, f"{self._name}/{_task().partitionId()}")

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._writing.report(messages, "write to skywalker")


class TableStreamWriter(DataSourceStreamArrowWriter):
    """Sends the rows of a streaming query, batch by batch."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Raises ConfigError for an option, or a column, that is not allowed."""
        self._writing = Writing(schema, options)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> Written:
        task = _task()
        place = f"{task.getLocalProperty(QUERY)}/{task.getLocalProperty(BATCH)}/{task.partitionId()}"
        return self._writing.write(iterator, place)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._writing.report(messages, f"batch {batchId} to skywalker")


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "only tasks write"
    return task
