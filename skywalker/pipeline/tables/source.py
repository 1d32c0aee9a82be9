"""The Spark format "skywalker": topics as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )


class TableSource(DataSource):
    """Reads the values sent to topics, and sends rows as values; options and guarantees are in docs/tables.md.

    Spark makes one in each process that plans a read or a write, so each half is imported where it is used.
    """

    @classmethod
    def name(cls) -> str:
        """Return what comes in format(...)."""
        return "skywalker"

    def schema(self) -> str:
        """Return what a read has that names no schema: the topic, and the value in MessagePack."""
        from skywalker.pipeline.tables.decoding import DEFAULT_SCHEMA

        return DEFAULT_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what makes spark.read. Raises ConfigError for a wrong option or schema."""
        from skywalker.pipeline.tables.reader import TableReader
        from skywalker.pipeline.tables.reading import Reading

        return TableReader(Reading.parse(self.options, streams=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what makes spark.readStream. Raises ConfigError for a wrong option or schema."""
        from skywalker.pipeline.tables.reading import Reading
        from skywalker.pipeline.tables.stream import TableStreamReader

        return TableStreamReader(Reading.parse(self.options, streams=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what makes df.write. Raises ConfigError for a wrong option or schema, or if it is to overwrite."""
        from skywalker.pipeline.tables.writer import TableWriter

        return TableWriter(schema, self.options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return what makes df.writeStream. Raises ConfigError for a wrong option or schema."""
        from skywalker.pipeline.tables.writer import TableStreamWriter

        return TableStreamWriter(schema, self.options)
