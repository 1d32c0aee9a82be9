"""Which records of which files: how a journal is divided among the tasks of Spark, and read by each."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from skywalker.errors import JournalError
from skywalker.journal.reading import header_of, read
from skywalker.pipeline.journals.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_RECORDS: Final = 32_768
"""Records of one Arrow batch: some MB in Spark, and few enough batches that they cost nothing."""

_log = logging.getLogger("skywalker.journal")


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """Some records of one file, which may be renamed meanwhile."""

    path: str
    first: int
    count: int


class Part(InputPartition):
    """What one task reads. Crosses to it as a pickle."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class Losses:
    """What becomes of it when records that should be there are not: an error, or a warning for who asked for that."""

    def __init__(self, fail: bool) -> None:
        self._fail = fail

    def report(self, loss: str | JournalError) -> None:
        """Raise JournalError, or warn and return."""
        if self._fail:
            self._raise(loss)
        _log.warning("%s", loss)

    def _raise(self, loss: str | JournalError) -> NoReturn:
        hint = "failOnDataLoss=false goes on without"
        raise JournalError(f"{loss}; {hint}") from (loss if isinstance(loss, JournalError) else None)


def divided(ranges: Iterable[Range], most: int) -> list[Part]:
    """Divide ranges among parts of `most` records each, the last with what is left, in order."""
    parts: list[Part] = []
    filling: list[Range] = []
    room = most
    for range in ranges:
        first, end = range.first, range.first + range.count
        while first < end:
            count = min(end - first, room)
            filling.append(Range(range.path, first, count))
            first += count
            room -= count
            if not room:
                parts.append(Part(tuple(filling)))
                filling, room = [], most
    if filling:
        parts.append(Part(tuple(filling)))
    return parts


def batches(part: Part, schema: StructType, losses: Losses) -> Iterator[pa.RecordBatch]:
    """Yield the records of a part. What is not there any more is reported."""
    for range in part.ranges:
        yield from _batches(range, schema, losses)


def _batches(range: Range, schema: StructType, losses: Losses) -> Iterator[pa.RecordBatch]:
    path = Path(range.path)
    at, end = range.first, range.first + range.count
    try:
        header, _ = header_of(path)
        if header is None:
            raise JournalError(f"{path}: it has been cut, and has no header any more")
        columns = Columns(schema, header)
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
