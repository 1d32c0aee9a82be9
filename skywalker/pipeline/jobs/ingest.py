"""Segments of a journal, made into Parquet: once each, however often it is asked for.

    DIR/calls/date=2026-01-31/SEGMENT.parquet   calls, by the day (UTC) on which they were answered
    DIR/names/FILE.parquet                      what topics are called
    DIR/rings/VERSION.ring                      the rings that calls were made in, as they are in the journal
    DIR/done/SEGMENT.json, DIR/done/FILE.json   how many records of a segment are there, how many bytes of names

A file is written beside its place and renamed, under a name that its segment gives it. So whatever was interrupted is
done again over itself, and a segment that was still open is replaced by more of itself.

Spark's own sink, with the stream of a journal and a checkpoint, writes each record once too, and is what to use for
other storage. But its tables are for Spark alone, where they were written: in `_spark_metadata` there are absolute
paths, by which a copy cannot be read, and whatever else reads Parquet counts what an interrupted batch has left. And it
passes over the batches of a second journal without a word, whose numbers it has from the first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skywalker import own_directory
from skywalker.errors import ConfigError, JournalError
from skywalker.journal import reading, rings
from skywalker.journal.header import CALLS, NAMES
from skywalker.journal.names import size_of
from skywalker.journal.reading import look, names_in, unix_ns
from skywalker.journal.segments import key_of
from skywalker.journal.topic_text import topic_text
from skywalker.pipeline.jobs.inputs import RINGS
from skywalker.pipeline.journals.columns import Columns, names_batch, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DONE: Final = "done"
RECORDS: Final = "records"
BYTES: Final = "bytes"
_NEW: Final = {RECORDS: 0, BYTES: 0}

_DAY_NS: Final = 86_400 * 10**9

MOST_DAYS: Final = 366
"""Of one segment: each has an open file, and one that is damaged, or forged, may say any number of days."""

ROW_GROUP: Final = 1 << 20
"""Records of a row group: what one task reads, and holds in memory while it writes."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ingested:
    """What came of it."""

    segments: int  # taken in now, or again because they have grown
    records: int  # that these have
    known: int  # segments that were there already
    problems: Sequence[JournalError]  # files that were left out


def ingest(spark: SparkSession, journal: Iterable[Path], directory: Path) -> Ingested:
    """Bring Parquet in `directory` up to date with a journal: directories, or files of it.

    Segments are read and written by tasks, at the paths that they have here. One that is still written is taken as far
    as it is, and anew the next time. What a journal has deleted stays. Raises ConfigError if there is nothing to read,
    `directory` cannot be written, or another ingest is at it.
    """
    found = look(journal)
    with _alone(directory):
        done = {path.stem: json.loads(path.read_bytes()) for path in (directory / DONE).glob("*.json")}
        segments = [each for each in found.segments if each.records > done.get(each.key, _NEW)[RECORDS]]
        names = [path for path in found.names if size_of(path) > done.get(path.name, _NEW)[BYTES]]
        # The longest first, each in a task of its own, so that no core is left with one at the end.
        segments.sort(key=lambda each: -each.records)
        work = [(CALLS, str(each.path)) for each in segments] + [(NAMES, str(path)) for path in names]
        taken = _work(spark, work, directory) if work else []
        problems = [*found.problems, *_copy_rings(found.rings, directory / RINGS)]
    problems += [JournalError(each.problem) for each in taken if each.problem]
    return Ingested(
        segments=sum(each.segments for each in taken),
        records=sum(each.records for each in taken),
        known=len(found.segments) - len(segments),
        problems=problems,
    )


class Taken(NamedTuple):
    """What came of one file."""

    segments: int = 0
    records: int = 0
    problem: str = ""


def take_in(kind: str, path: Path, directory: Path) -> Taken:
    """Write a file of calls or of names, unless it is damaged, or was deleted. Raises OSError."""
    try:
        if kind == CALLS:
            return Taken(1, write_calls(path, directory))
        write_names(path, directory)
    except JournalError as error:
        return Taken(problem=str(error))
    except FileNotFoundError:
        if path.exists() or path.with_name(key_of(path.name)).exists():
            raise
    return Taken()


def _work(spark: SparkSession, work: Sequence[tuple[str, str]], directory: Path) -> list[Any]:
    """Take in all files; return what is Taken, as rows."""

    def take_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist([take_in(row["kind"], Path(row["path"]), directory)._asdict()])

    rows = [(at, kind, path) for at, (kind, path) in enumerate(work)]
    table = spark.createDataFrame(rows, "at int, kind string, path string").repartitionByRange(len(rows), "at")
    return table.mapInArrow(take_all, "segments bigint, records bigint, problem string").collect()


def write_calls(path: Path, directory: Path) -> int:
    """Write the records of one segment to their days, and then that it is done; return how many there are.

    Raises OSError, and JournalError if the file cannot be read.
    """
    segment = reading.segment(path)
    columns = Columns(schema_of(CALLS), segment.header)
    records = 0
    with contextlib.ExitStack() as stack:
        writers: dict[str, pq.ParquetWriter] = {}
        for chunk in segment.chunks(size=ROW_GROUP):
            days = unix_ns(chunk, segment.header) // _DAY_NS
            # A segment is of minutes, so nearly always of one day.
            for day in np.unique(days).tolist():
                part = columns.batch(chunk.compress(days == day))
                date = str(np.datetime64(day, "D"))
                if date not in writers:
                    if len(writers) >= MOST_DAYS:
                        raise JournalError(f"{path}: it is damaged: its calls are of more than {MOST_DAYS} days")
                    file = directory / CALLS / f"date={date}" / f"{segment.key}.parquet"
                    writers[date] = stack.enter_context(_writer(file, part.schema))
                writers[date].write_batch(part)
            records += len(chunk)
    _put(directory / DONE / f"{segment.key}.json", json.dumps({RECORDS: records}).encode())
    return records


def write_names(path: Path, directory: Path) -> None:
    """Write a file of names, and then that it is done. Raises as write_calls() does."""
    size = size_of(path)
    header, entries = names_in(path)
    if header is not None:
        batch = names_batch(schema_of(NAMES), ((header.node, token, topic_text(topic)) for token, topic in entries))
        with _writer(directory / NAMES / f"{path.name}.parquet", batch.schema) as writer:
            writer.write_batch(batch)
        _put(directory / DONE / f"{path.name}.json", json.dumps({BYTES: size}).encode())


@contextlib.contextmanager
def _writer(file: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Write a file beside its place, which it takes when it is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with _beside(file) as beside, pq.ParquetWriter(beside, schema, compression="zstd") as writer:
        yield writer


def _copy_rings(files: Iterable[Path], directory: Path) -> Iterator[JournalError]:
    """Copy those that are not there yet; yield what is wrong with any other."""
    directory.mkdir(exist_ok=True)
    for file in files:
        to = directory / file.name
        try:
            if not to.exists():
                _put(to, rings.read(file))
        except FileNotFoundError:
            continue  # deleted, with the calls that it was for
        except JournalError as error:
            yield error


def _put(file: Path, data: bytes) -> None:
    with _beside(file) as beside:
        beside.write_bytes(data)


@contextlib.contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """Give a path to write a file at, which takes its place when the block is done and its data are on disk."""
    # Spark passes over what begins so.
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield beside
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """See that no other ingest brings a directory up to date meanwhile. Raises ConfigError."""
    try:
        own_directory.make(directory, own_directory.PUBLIC)
        (directory / DONE).mkdir(exist_ok=True)
        (directory / CALLS).mkdir(exist_ok=True)
        lock = (directory / DONE / ".lock").open("w")
    except OSError as error:
        raise ConfigError(f"cannot write to {str(directory)!r}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"another ingest is just bringing {str(directory)!r} up to date") from None
        yield
