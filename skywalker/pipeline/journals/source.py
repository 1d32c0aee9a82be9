"""The Spark format "skywalker-journal": what workers and load generators wrote, in batches and as a stream.

Files are read where a task runs, so their directory must be the same everywhere. A stream keeps
nothing of its own: its offsets name records, which stay what they are, so a batch that is made
anew is made of the same ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from skywalker.errors import ConfigError, JournalError
from skywalker.journal.header import CALLS, HEADER_BYTES, NAMES
from skywalker.journal.reading import look, names_in, open_file, read, segment, size_of
from skywalker.journal.record import RECORD_BYTES
from skywalker.journal.segments import File, files
from skywalker.journal.topic_text import topic_text
from skywalker.pipeline import mistakes
from skywalker.pipeline.journals.columns import Columns, check, names_batch, schema_of
from skywalker.pipeline.journals.position import Position, Seen, Stretch, advanced, between, bounded
from skywalker.pipeline.mistakes import FAIL, Losses
from skywalker.pipeline.options import Options

if TYPE_CHECKING:
    import pyarrow as pa


PATH: Final = "path"
KIND: Final = "kind"
PARTITION_RECORDS: Final = "recordsPerPartition"
TRIGGER_RECORDS: Final = "maxRecordsPerTrigger"

_OPTIONS: Final = (PATH, KIND, PARTITION_RECORDS, TRIGGER_RECORDS, FAIL)

DEFAULT_PARTITION_RECORDS: Final = 500_000
"""A task costs as much as some 20,000 records; so many take it about half a second."""

_MOST: Final = 10**12


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read, and how."""

    directory: Path
    kind: str
    partition_records: int
    trigger_records: int | None
    losses: Losses

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Take the options that Spark hands over. Raises ConfigError."""
        options = Options.parse(given, _OPTIONS)
        return cls(
            _directory(options.text(PATH)),
            options.one_of(KIND, (CALLS, NAMES), CALLS),
            options.whole(PARTITION_RECORDS, DEFAULT_PARTITION_RECORDS, 1, _MOST),
            options.whole(TRIGGER_RECORDS, 1, 1, _MOST) if options.has(TRIGGER_RECORDS) else None,
            Losses(options.truth(FAIL, True)),
        )


def _directory(text: str) -> Path:
    """Return the directory that the option `path` names. Raises ConfigError."""
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file":
        text = rest if not rest.startswith("//") else rest[2:]
    elif colon and "/" not in scheme and rest.startswith("//"):
        raise ConfigError(
            f"option {PATH!r} is {text!r}; a journal is read from a directory of the machine, or one mounted"
        )
    if not text:
        raise ConfigError(
            f"option {PATH!r} is missing: .load(DIR), with the directory of `skywalker serve --journal DIR`"
        )
    return Path(text).absolute()


BATCH_RECORDS: Final = 32_768
"""Records of one Arrow batch: some MB in Spark, and few enough batches that they cost nothing."""


class Part(InputPartition):
    """What one task reads. Crosses to it as a pickle."""

    def __init__(self, directory: Path, stretches: tuple[Stretch, ...]) -> None:
        super().__init__(None)
        self.directory = directory
        self.stretches = stretches


def divided(directory: Path, stretches: Iterable[Stretch], most: int) -> list[Part]:
    """Divide stretches among parts of `most` records each, the last with what is left, in order."""
    parts: list[Part] = []
    filling: list[Stretch] = []
    room = most
    for each in stretches:
        first, end = each.first, each.first + each.count
        while first < end:
            count = min(end - first, room)
            filling.append(Stretch(each.key, first, count))
            first += count
            room -= count
            if not room:
                parts.append(Part(directory, tuple(filling)))
                filling, room = [], most
    if filling:
        parts.append(Part(directory, tuple(filling)))
    return parts


def batches(part: Part, schema: StructType, losses: Losses) -> Iterator[pa.RecordBatch]:
    """Yield the records of a part. What is not there any more is reported."""
    for each in part.stretches:
        yield from _batches(part.directory / each.key, each, schema, losses)


def _batches(path: Path, stretch: Stretch, schema: StructType, losses: Losses) -> Iterator[pa.RecordBatch]:
    at, end = stretch.first, stretch.first + stretch.count
    try:
        columns = Columns(schema, segment(path).header)
        while at < end:
            records = read(path, at, min(BATCH_RECORDS, end - at))
            if not len(records):
                break
            yield columns.batch(records)
            at += len(records)
    except JournalError as error:
        losses.report(error)
    except FileNotFoundError:
        losses.report(f"{path}: it was deleted before its records {at} to {end - 1} were read")
    else:
        if at < end:
            losses.report(f"{path}: it has been cut: its records {at} to {end - 1} are gone")


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
        most = self._reading.trigger_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """See DataSourceStreamReader: `start` itself if nothing is new. Raises DataLossError for lost records."""
        began = Position.parse(start)
        seen = self._seen(began)
        if self._target is not None:
            seen = bounded(seen, self._target)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = advanced(began, seen, most, self._reading.losses.report)
        return start if end is began else end.to_offset()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {file.key: file.records for file in self._seen(Position())}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See DataSourceStreamReader. Raises DataLossError for lost records."""
        began = Position.parse(start)
        stretches = between(began, Position.parse(end), self._seen(began), self._reading.losses.report)
        return divided(self._reading.directory, stretches, self._reading.partition_records)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        return batches(partition, self._schema, self._reading.losses)

    def _seen(self, began: Position) -> list[Seen]:
        """Return what is there. Of files that were read to the end when a batch began the names will do."""
        try:
            found = files(self._reading.directory)
        except OSError as error:
            raise ConfigError(f"cannot read the journal {str(self._reading.directory)!r}: {error.strerror}") from error
        return [seen for file in found if file.kind == CALLS and (seen := self._seen_of(file, began))]

    def _seen_of(self, file: File, began: Position) -> Seen | None:
        """Return what is known of a file without reading it; None if it has been deleted, or cannot be one."""
        if not file.is_open and began.is_done(file.writer, file.opened):
            return Seen(file.key, file.writer, file.opened, 0, True)
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


FORMAT: Final = "skywalker-journal"


class JournalSource(DataSource):
    """spark.read|readStream.format("skywalker-journal").load(DIR)."""

    @classmethod
    def name(cls) -> str:
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
