"""The batch read: each task takes its share of the rows over a connection of its own, now or never."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from skywalker.pipeline.tables import blocks
from skywalker.pipeline.tables.decoding import ROWS, Decoder
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.receiving import Receiver

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType


class Share(InputPartition):
    """How many rows one task takes at most."""

    def __init__(self, rows: int) -> None:
        super().__init__(None)
        self.rows = rows


class TableReader(DataSourceReader):
    """Reads topics once, until it has its rows or none has come for a while."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        """Raises ConfigError for a schema that no value can have."""
        Decoder(schema, reading.mode)
        self._reading = reading
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the shares of the tasks, as even as can be."""
        rows, parts = self._reading.rows_per_batch, self._reading.partitions
        return [Share(rows * (part + 1) // parts - rows * part // parts) for part in range(min(parts, rows))]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Receive one share. Raises Unreachable if no node answers."""
        assert isinstance(partition, Share)
        bodies = _receive(self._reading, partition.rows)
        yield from Decoder(self._schema, self._reading.mode).batches(bodies)


def _receive(reading: Reading, rows: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield up to so many rows as bodies of blocks, each acknowledged before."""
    # What was asked for and is not wanted any more goes back to its senders with the connection.
    with Receiver(reading, rows) as receiver:
        left = rows
        while left:
            chunk = receiver.receive(reading.wait_s, min(left, ROWS))
            if not chunk:
                if not receiver.is_connected:
                    raise receiver.unreachable()
                return
            left -= len(chunk)
            receiver.acknowledge(chunk, and_go_on=left > 0)
            yield blocks.pack(0, receiver.grouped(chunk))[blocks.HEADER_BYTES :], 0, len(chunk)
