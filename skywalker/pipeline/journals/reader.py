"""The batch read of calls: all that are there when it is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from skywalker.journal.reading import look
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
