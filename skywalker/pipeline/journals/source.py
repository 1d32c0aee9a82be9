"""The Spark format "skywalker-journal": what workers and load generators wrote, in batches and as a stream.

Files are read where a task runs, so their directory must be the same everywhere. A stream keeps
nothing of its own: its offsets name records, which stay what they are, so a batch that is made
anew is made of the same ones.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from skywalker.errors import ConfigError
from skywalker.journal.header import CALLS
from skywalker.pipeline import mistakes
from skywalker.pipeline.journals.columns import check, schema_of
from skywalker.pipeline.journals.reader import CallsReader, NamesReader
from skywalker.pipeline.journals.reading import KIND, TRIGGER_RECORDS, Reading
from skywalker.pipeline.journals.stream import CallsStream

FORMAT: Final = "skywalker-journal"


class JournalSource(DataSource):
    """spark.read|readStream.format("skywalker-journal").load(DIR)."""

    @classmethod
    def name(cls) -> str:
        """See DataSource."""
        return FORMAT

    @mistakes.told_plainly()
    def schema(self) -> StructType:
        """See DataSource: all columns. With .schema() a reader gets some of them, sooner."""
        return schema_of(Reading.parse(self.options).kind)

    @mistakes.told_plainly()
    def reader(self, schema: StructType) -> DataSourceReader:
        """See DataSource. Raises ConfigError."""
        reading = Reading.parse(self.options)
        if reading.trigger_records is not None:
            raise ConfigError(f"option {TRIGGER_RECORDS!r} is for streams, and this is read at once")
        check(schema, reading.kind)
        return CallsReader(reading, schema) if reading.kind == CALLS else NamesReader(reading, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See DataSource. What it returns raises ConfigError for a wrong option or schema."""
        return mistakes.stream(lambda: self._stream(schema))

    def _stream(self, schema: StructType) -> CallsStream:
        reading = Reading.parse(self.options)
        if reading.kind != CALLS:
            raise ConfigError(
                f"option {KIND!r} is {reading.kind!r}, and only {CALLS!r} come as a stream; read names anew"
            )
        check(schema, reading.kind)
        return CallsStream(reading, schema)
