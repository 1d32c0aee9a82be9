"""The Spark format "skywalker-journal": what workers and load generators wrote, in batches and as a stream.

Files are read where a task runs, so their directory must be the same everywhere. A stream keeps
nothing of its own: its offsets name records, which stay what they are, so a batch that is made
anew is made of the same ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from skywalker.cli.topic_text import topic_text
from skywalker.errors import ConfigError, JournalError
from skywalker.journal.header import CALLS, HEADER_BYTES, NAMES
from skywalker.journal.reading import look, names_in
from skywalker.journal.record import RECORD_BYTES
from skywalker.journal.segments import OPEN, File, files
from skywalker.pipeline.journals.columns import check, names_batch, schema_of
from skywalker.pipeline.journals.position import Position, Seen, advanced, between, bounded
from skywalker.pipeline.journals.ranges import Losses, Part, Range, batches, divided
from skywalker.pipeline.tables.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = "skywalker-journal"

PATH: Final = "path"
KIND: Final = "kind"
PARTITION_RECORDS: Final = "recordsPerPartition"
TRIGGER_RECORDS: Final = "maxRecordsPerTrigger"
FAIL: Final = "failOnDataLoss"

_OPTIONS: Final = (PATH, KIND, PARTITION_RECORDS, TRIGGER_RECORDS, FAIL)

DEFAULT_PARTITION_RECORDS: Final = 500_000
"""A task costs as much as some 20,000 records; so many take it about half a second."""

_MOST: Final = 10**12


@dataclasses.dataclass(frozen=True, slots=True)
class _Settings:
    """The options of one read."""

    directory: Path
    kind: str
    partition_records: int
    trigger_records: int | None
    fail: bool

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Take the options that Spark hands over. Raises ConfigError."""
        options = Options.parse(given, _OPTIONS)
        return cls(
            _directory(options.text(PATH)),
            options.one_of(KIND, (CALLS, NAMES), CALLS),
            options.whole(PARTITION_RECORDS, DEFAULT_PARTITION_RECORDS, 1, _MOST),
            options.whole(TRIGGER_RECORDS, 1, 1, _MOST) if options.has(TRIGGER_RECORDS) else None,
            options.truth(FAIL, True),
        )


class JournalSource(DataSource):
    """spark.read|readStream.format("skywalker-journal").load(DIR)."""

    @classmethod
    def name(cls) -> str:
        """See DataSource."""
        return FORMAT

    def schema(self) -> StructType:
        """See DataSource: all columns. With .schema() a reader gets some of them, sooner."""
        return schema_of(_Settings.parse(self.options).kind)

    def reader(self, schema: StructType) -> DataSourceReader:
        """See DataSource. Raises ConfigError."""
        settings = _Settings.parse(self.options)
        if settings.trigger_records is not None:
            raise ConfigError(f"option {TRIGGER_RECORDS!r} is for streams, and this is read at once")
        check(schema, settings.kind)
        return _CallsReader(settings, schema) if settings.kind == CALLS else _NamesReader(settings, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See DataSource. Raises ConfigError."""
        settings = _Settings.parse(self.options)
        if settings.kind != CALLS:
            raise ConfigError(
                f"option {KIND!r} is {settings.kind!r}, and only {CALLS!r} come as a stream; read names anew"
            )
        check(schema, settings.kind)
        return _CallsStream(settings, schema)


class _CallsReader(DataSourceReader):
    """Reads all records that are there when it is asked how they divide."""

    def __init__(self, settings: _Settings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """See DataSourceReader. Raises ConfigError, and JournalError for a file that cannot be read."""
        found = look([self._settings.directory])
        losses = Losses(self._settings.fail)
        for problem in found.problems:
            losses.report(problem)
        ranges = [Range(str(segment.path), 0, segment.records) for segment in found.segments]
        return divided(ranges, self._settings.partition_records) or [Part(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceReader."""
        assert isinstance(partition, Part)
        return batches(partition, self._schema, Losses(self._settings.fail))


class _NamesReader(DataSourceReader):
    """Reads the names of topics, each once for every node that wrote it."""

    def __init__(self, settings: _Settings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """See DataSourceReader: names are few, and what workers share is told once."""
        return [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceReader."""
        found = look([self._settings.directory])
        losses = Losses(self._settings.fail)
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


class _CallsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads records as they come, each batch of the same ones however often it is made."""

    def __init__(self, settings: _Settings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._target: dict[str, int] | None = None  # records by file, beyond which nothing is read

    def initialOffset(self) -> dict[str, Any]:
        """See DataSourceStreamReader: before the oldest record."""
        return Position().to_offset()

    def getDefaultReadLimit(self) -> ReadLimit:
        """See DataSourceStreamReader."""
        most = self._settings.trigger_records
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """See DataSourceStreamReader: `start` itself if nothing is new. Raises JournalError for lost records."""
        seen = self._seen()
        if self._target is not None:
            seen = bounded(seen, self._target)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        began = Position.parse(start)
        end = advanced(began, seen, most, self._lost)
        return start if end is began else end.to_offset()

    def prepareForTriggerAvailableNow(self) -> None:
        """See SupportsTriggerAvailableNow."""
        self._target = {file.key: file.records for file in self._seen()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See DataSourceStreamReader. Raises JournalError for lost records."""
        stretches = between(Position.parse(start), Position.parse(end), self._seen(), self._lost)
        directory = self._settings.directory
        ranges = [Range(str(directory / each.key), each.first, each.count) for each in stretches]
        return divided(ranges, self._settings.partition_records)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """See DataSourceStreamReader."""
        assert isinstance(partition, Part)
        return batches(partition, self._schema, Losses(self._settings.fail))

    @property
    def _lost(self) -> Callable[[str], None]:
        return Losses(self._settings.fail).report

    def _seen(self) -> list[Seen]:
        try:
            found = files(self._settings.directory)
        except OSError as error:
            raise ConfigError(f"cannot read the journal {str(self._settings.directory)!r}: {error.strerror}") from error
        return [seen for file in found if file.kind == CALLS and (seen := _seen(file))]


def _seen(file: File) -> Seen | None:
    """Return what is known of a file without reading it; None if it has been deleted."""
    key = file.path.name.removesuffix(OPEN)
    for path in (file.path, file.path.with_name(key)):
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        return Seen(key, file.writer, file.opened, max(0, size - HEADER_BYTES) // RECORD_BYTES, not file.is_open)
    return None


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
