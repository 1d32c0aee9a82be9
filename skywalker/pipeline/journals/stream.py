"""The stream of calls: each batch of the same records, however often it is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from skywalker.errors import ConfigError, JournalError
from skywalker.journal.header import CALLS, HEADER_BYTES
from skywalker.journal.reading import open_file, size_of
from skywalker.journal.record import RECORD_BYTES
from skywalker.journal.segments import File, files
from skywalker.pipeline.journals.parts import Part, batches, divided
from skywalker.pipeline.journals.position import Position, Seen, advanced, between, bounded
from skywalker.pipeline.journals.reading import Reading

if TYPE_CHECKING:
    import pyarrow as pa


class CallsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads records as they come, each batch of the same ones however often it is made."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema
        self._target: dict[str, int] | None = None  # records by file, beyond which nothing is read

    def initialOffset(self) -> dict[str, Any]:
        """See DataSourceStreamReader: before the oldest record."""
        return Position().to_offset()

    def getDefaultReadLimit(self) -> ReadLimit:
        """See DataSourceStreamReader."""
        most = self._reading.trigger_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """See DataSourceStreamReader: `start` itself if nothing is new. Raises DataLossError for lost records."""
        seen = self._seen()
        if self._target is not None:
            seen = bounded(seen, self._target)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        began = Position.parse(start)
        end = advanced(began, seen, most, self._reading.losses.report)
        return start if end is began else end.to_offset()

    def prepareForTriggerAvailableNow(self) -> None:
        """See SupportsTriggerAvailableNow."""
        self._target = {file.key: file.records for file in self._seen()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See DataSourceStreamReader. Raises DataLossError for lost records."""
        stretches = between(Position.parse(start), Position.parse(end), self._seen(), self._reading.losses.report)
        return divided(self._reading.directory, stretches, self._reading.partition_records)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceStreamReader."""
        assert isinstance(partition, Part)
        return batches(partition, self._schema, self._reading.losses)

    def _seen(self) -> list[Seen]:
        try:
            found = files(self._reading.directory)
        except OSError as error:
            raise ConfigError(f"cannot read the journal {str(self._reading.directory)!r}: {error.strerror}") from error
        return [seen for file in found if file.kind == CALLS and (seen := self._seen_of(file))]

    def _seen_of(self, file: File) -> Seen | None:
        """Return what is known of a file without reading it; None if it has been deleted, or cannot be one."""
        try:
            with open_file(file.path) as opened:
                size = size_of(opened)
        except FileNotFoundError:
            return None
        except JournalError as error:
            self._reading.losses.report(error)
            return None
        records = max(0, size - HEADER_BYTES) // RECORD_BYTES
        return Seen(file.key, file.writer, file.opened, records, not file.is_open)
