"""How a journal is divided among the tasks of Spark, and read by each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from skywalker.errors import JournalError
from skywalker.journal.reading import read, segment
from skywalker.pipeline.journals.columns import Columns
from skywalker.pipeline.journals.position import Stretch
from skywalker.pipeline.losses import Losses

if TYPE_CHECKING:
    import pyarrow as pa

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
