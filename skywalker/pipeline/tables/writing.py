"""What Spark calls to write to topics: every partition sends its rows over a connection of its own.

A write is done once every row has its outcome. If a task fails, Spark may attempt it again, and a streaming query that
starts again repeats its last batch: then rows are sent again that were taken before.
"""

from __future__ import annotations

import dataclasses
import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from skywalker.clients.settings import Settings
from skywalker.errors import ConfigError
from skywalker.limits import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_MS
from skywalker.pipeline.options import Options
from skywalker.pipeline.tables.encoding import Encoder, Ids
from skywalker.pipeline.tables.finding import OPTIONS as NODE_OPTIONS
from skywalker.pipeline.tables.finding import Nodes
from skywalker.pipeline.tables.flight import MOST
from skywalker.pipeline.tables.reading import NAME
from skywalker.pipeline.tables.sending import Sender, told

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType


_log: Final = logging.getLogger("skywalker.pipeline")

OPTIONS: Final = (*NODE_OPTIONS, "topic", "topicColumn", "timeoutMs", "onTimeout", "maxInFlight", "dedup")
FAIL, COUNT, DROP = "fail", "count", "drop"

IN_FLIGHT: Final = 1000
"""Rows of a partition that are under way, unless told otherwise: with more, a node is no quicker."""


@dataclasses.dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What became of the rows of one partition."""

    taken: int = 0
    missed: Counter[bytes] = dataclasses.field(
        default_factory=Counter
    )  # rows that nobody came for in time, by encoded topic
    sent_again: int = 0  # rows that a lost connection made go out once more: they may have been taken twice

    @classmethod
    def total(cls, messages: Sequence[WriterCommitMessage | None]) -> Written:
        """Return what became of the rows of all partitions; of those that failed nothing is known."""
        parts = [message for message in messages if isinstance(message, cls)]
        missed: Counter[bytes] = Counter()
        for part in parts:
            missed += part.missed
        return cls(sum(part.taken for part in parts), missed, sum(part.sent_again for part in parts))


class Writing:
    """What is to be done with rows, and how. It goes to every task."""

    def __init__(self, schema: StructType, options: Mapping[str, str]) -> None:
        """Raises ConfigError for an option, or a column, that is not allowed."""
        known = Options.parse(options, OPTIONS)
        self._nodes = Nodes.parse(known)
        self.timeout_ms = known.whole("timeoutMs", round(DEFAULT_TIMEOUT_S * 1000), 0, MAX_TIMEOUT_MS)
        self.on_timeout = known.one_of("onTimeout", (FAIL, COUNT, DROP), FAIL)
        self.window = known.whole("maxInFlight", IN_FLIGHT, 1, MOST)
        self.has_ids = known.truth("dedup", False)
        topic = known.text("topic") or None
        if topic is not None and known.has("topicColumn"):
            raise ConfigError("the options 'topic' and 'topicColumn' say both where rows go; give one of them")
        self.encoder = Encoder(schema, topic=topic, topic_column=known.text("topicColumn", "topic"))
        if self.has_ids:
            self.encoder.check_ids()

    def settings(self) -> Settings:
        """Return where the nodes are, and what they are told of us. Raises ConfigError."""
        return self._nodes.settings(name=NAME)

    def write(self, batches: Iterator[pyarrow.RecordBatch], place: str) -> Written:
        """Send the rows of one partition; its ids begin with `place`. Raises as Sender.send() does."""
        ids = Ids(place) if self.has_ids else None
        is_fatal = self.on_timeout == FAIL
        with Sender(self.settings(), self.timeout_ms, self.window, missed_is_fatal=is_fatal) as sender:
            for batch in batches:
                sender.send(self.encoder.messages(batch, ids))
            sender.finish()
            flight = sender.flight
            return Written(flight.handed_over, flight.missed, flight.issued_again)

    def report(self, messages: Sequence[WriterCommitMessage | None], what: str) -> None:
        """Say in the driver's log what did not go as it should."""
        written = Written.total(messages)
        if written.missed:
            level = logging.WARNING if self.on_timeout == COUNT else logging.INFO
            _log.log(level, "%s: nobody came for %s; %s were taken", what, told(written.missed), f"{written.taken:,}")
        if written.sent_again:
            text = "%s: %s rows were sent again after a connection was lost, and may have been taken twice"
            _log.warning(text, what, f"{written.sent_again:,}")


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
