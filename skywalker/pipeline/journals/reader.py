"""Batch reads of a journal: all calls that are there when it is planned, or the names of topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from skywalker.errors import JournalError
from skywalker.journal.reading import look, names_in
from skywalker.journal.topic_text import topic_text
from skywalker.pipeline.journals.columns import names_batch
from skywalker.pipeline.journals.parts import Part, batches, divided
from skywalker.pipeline.journals.position import Stretch
from skywalker.pipeline.journals.reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa


class CallsReader(DataSourceReader):
    """Reads all records that are there when it is asked how they divide."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """See DataSourceReader. Raises ConfigError, and DataLossError for a file that cannot be read."""
        found = look([self._reading.directory])
        for problem in found.problems:
            self._reading.losses.report(problem)
        stretches = [Stretch(segment.key, 0, segment.records) for segment in found.segments]
        path = self._reading.directory
        directory = path if path.is_dir() else path.parent  # one file alone can be read too
        return divided(directory, stretches, self._reading.partition_records) or [Part(directory, ())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceReader."""
        assert isinstance(partition, Part)
        return batches(partition, self._schema, self._reading.losses)


class NamesReader(DataSourceReader):
    """Reads the names of topics, each once for every node that wrote it."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """See DataSourceReader: names are few, and what workers share is told once."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceReader."""
        found = look([self._reading.directory])
        losses = self._reading.losses
        for problem in found.problems:
            losses.report(problem)
        names: dict[tuple[str, int], str] = {}
        for path in found.names:
            try:
                header, entries = names_in(path)
            except FileNotFoundError:
                continue  # deleted, with the records that it was for
            except JournalError as error:
                losses.report(error)
                continue
            if header is not None:
                names.update(((header.node, token), topic_text(topic)) for token, topic in entries)
        yield names_batch(self._schema, ((node, token, topic) for (node, token), topic in names.items()))
