"""What Spark calls to read topics: once, or on and on.

Of a batch read each task takes its share of the rows over a connection of its own, now or never. Of a stream a process
beside the driver receives into a spool and numbers the rows, and tasks decode what is in it. Its offset is {"row": n}:
the number of the first row that is not of the batches before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from skywalker.errors import ConfigError
from skywalker.pipeline.mistakes import DataLossError, Losses
from skywalker.pipeline.tables.decoding import ROWS, Decoder
from skywalker.pipeline.tables.feeding import Feed, Feeder, P, T
from skywalker.pipeline.tables.reading import MAX_ROWS, Reading
from skywalker.pipeline.tables.receiving import Receiver
from skywalker.pipeline.tables.spool import HEADER_BYTES, MOST_ROWS, Extent, open_file, pack, scan

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
            yield pack(0, receiver.grouped(chunk))[HEADER_BYTES:], 0, len(chunk)


ROW: Final = "row"


class Slice(InputPartition):
    """Where the rows of one task are."""

    def __init__(self, extents: list[Extent]) -> None:
        super().__init__(None)
        self.extents = extents


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics on and on. The driver has one of these, which has a feed; those in tasks have none."""

    def __init__(self, reading: Reading, schema: StructType) -> None:
        """Raises ConfigError for a schema that no value can have."""
        Decoder(schema, reading.mode)
        self._reading = reading
        self._schema = schema
        self._feed: Feeder | None = None
        self._only_what_is_there = False
        self._is_dry = False

    # On the driver.

    def initialOffset(self) -> dict[str, Any]:
        """Return where a query begins that has no checkpoint: at what an earlier one left in the spool, if it did."""
        return {ROW: self._ask(Feed.first)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return how much makes a batch."""
        return ReadMaxRows(self._reading.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """Have the stream end once no row has come for a while."""
        self._only_what_is_there = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where the next batch ends, `start` if there are no rows."""
        if self._is_dry:
            return start
        begin = _row(start)
        self._ask(Feed.start_at, begin)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else MAX_ROWS
        end = self._ask(Feed.await_rows, begin, most, self._reading.wait_s)
        if end > begin:
            return {ROW: end}
        self._is_dry = self._only_what_is_there
        return start

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return how the receiving goes, which Spark shows as the source's latestOffset in a query's progress."""
        return None if self._feed is None else self._feed.ask(Feed.report)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return where the rows of a batch are. Raises DataLossError if they are gone, or logs it."""
        begin, end_row = _row(start), _row(end)
        slices = self._ask(Feed.slices, begin, end_row, self._reading.partitions)
        found = sum(extent.rows for extents in slices for extent in extents)
        if found < end_row - begin:
            self._lost(f"{end_row - begin - found} of the rows {begin} to {end_row} are lost")
        return [Slice(extents) for extents in slices if extents]

    def _lost(self, what: str) -> None:
        spool = self._reading.spool
        damaged = ", ".join(map(str, sorted(spool.glob("*.damaged")))) if spool else ""
        why = f"they are not in {spool}" if spool else "they were with a driver that has ended, and there was no spool"
        Losses(self._reading.fails_on_loss).report(f"{what}: {why}{damaged and f'; damaged are {damaged}'}")

    def commit(self, end: dict[str, Any]) -> None:
        """Spark is done with all rows before this offset."""
        self._ask(Feed.commit, _row(end))

    def stop(self) -> None:
        """Leave. What is in a temporary spool and was not committed is lost."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.stop()

    def _ask(self, method: Callable[Concatenate[Feed, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        if self._feed is None:
            self._feed = Feeder(self._reading)
        return self._feed.ask(method, *arguments, **named)

    # In tasks.

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Decode the rows of one task."""
        assert isinstance(partition, Slice)
        return Decoder(self._schema, self._reading.mode).batches(_bodies(partition.extents))


def _row(offset: Mapping[str, Any]) -> int:
    """Return the row of an offset, as a checkpoint has it. Raises ConfigError if there is none."""
    row = offset.get(ROW)
    if type(row) is not int or not 0 <= row <= MOST_ROWS:
        raise ConfigError(f"the checkpoint holds no offset of a topic: {offset}")
    return row


def _bodies(extents: list[Extent]) -> Iterator[tuple[memoryview, int, int]]:
    for extent in extents:
        data = memoryview(_content(extent))
        skip, left = extent.skip, extent.rows
        for block in scan(data):
            take = min(block.rows - skip, left)
            yield data[block.begin + HEADER_BYTES : block.end], skip, take
            skip, left = 0, left - take
        if left:
            raise DataLossError(f"{extent.path}: {left} rows that were there cannot be read back")


def _content(extent: Extent) -> bytes:
    try:
        with open_file(Path(extent.path)) as file:
            file.seek(extent.begin)
            return file.read(extent.end - extent.begin)
    except FileNotFoundError as error:
        raise ConfigError(
            f"option 'spool': {extent.path} is not there, or not seen from here. Nothing may be deleted from it while"
            " a query runs; where tasks run on other machines than the driver, it must be a directory that all share"
        ) from error
