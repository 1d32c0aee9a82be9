"""The Spark format "skywalker": topics as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from skywalker.pipeline import mistakes

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

    @mistakes.told_plainly()
    def schema(self) -> str:
        """Return what a read has that names no schema: the topic, and the value in MessagePack.

        Raises ConfigError for a wrong option: this is all that Spark asks for in load(), and of whom it will be, a
        stream or a table, it says nothing.
        """
        from skywalker.pipeline.tables.decoding import DEFAULT_SCHEMA
        from skywalker.pipeline.tables.reading import Reading

        Reading.parse(self.options, streams=True)  # takes whatever a table takes, too
        return DEFAULT_SCHEMA

    @mistakes.told_plainly()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what makes spark.read. Raises ConfigError for a wrong option or schema."""
        from skywalker.pipeline.tables.reader import TableReader
        from skywalker.pipeline.tables.reading import Reading

        return TableReader(Reading.parse(self.options, streams=False), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what makes spark.readStream, and raises ConfigError later for a wrong option or schema."""
        from skywalker.pipeline.tables.reader import TableStreamReader
        from skywalker.pipeline.tables.reading import Reading

        return mistakes.stream(lambda: TableStreamReader(Reading.parse(self.options, streams=True), schema))

    @mistakes.told_plainly()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what makes df.write. Raises ConfigError for a wrong option or schema, or if it is to overwrite."""
        from skywalker.pipeline.tables.writing import TableWriter

        return TableWriter(schema, self.options, overwrite)

    @mistakes.told_plainly()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return what makes df.writeStream. Raises ConfigError for a wrong option or schema."""
        from skywalker.pipeline.tables.writing import TableStreamWriter

        return TableStreamWriter(schema, self.options)
