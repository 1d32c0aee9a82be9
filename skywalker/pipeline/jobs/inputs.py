"""Where the calls are that jobs study: what `ingest` made, or a journal itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from skywalker.errors import ConfigError
from skywalker.journal import rings
from skywalker.journal.header import CALLS, NAMES
from skywalker.journal.segments import files
from skywalker.pipeline.jobs.owners import NO_OWNERS, Owners
from skywalker.pipeline.journals.columns import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


RINGS: Final = "rings"
"""Where ingest puts the rings of a journal."""


class Input(NamedTuple):
    """Calls, the names of topics if there are any, and the rings that are known."""

    calls: DataFrame
    names: DataFrame | None = None
    owners: Owners = NO_OWNERS


def is_journal(directory: Path) -> bool:
    """Return whether a directory holds a journal, rather than Parquet. Raises ConfigError if it holds neither."""
    if not directory.is_dir():
        raise ConfigError(f"there is no directory {str(directory)!r} to read calls from")
    if (directory / CALLS).is_dir():
        return False
    if files(directory):
        return True
    raise ConfigError(
        f"{str(directory)!r} holds neither a journal, as 'skywalker serve --journal' writes it, "
        f"nor what 'skywalker pipeline ingest' makes of one"
    )


def read(spark: SparkSession, directory: Path) -> Input:
    """Return what is in a directory. Raises ConfigError if there are no calls."""
    if is_journal(directory):
        from skywalker import pipeline

        pipeline.register(spark)
        journal = spark.read.format("skywalker-journal")
        calls = journal.load(str(directory))
        names = journal.option("kind", NAMES).load(str(directory))  # of the same reader, from now on
        return Input(calls, names, Owners.of_files(rings.files(directory)))
    # With their schema, they may be empty.
    calls = spark.read.schema(schema_of(CALLS).add("date", "date")).parquet(str(directory / CALLS))
    topics, known = directory / NAMES, directory / RINGS
    return Input(
        calls,
        spark.read.schema(schema_of(NAMES)).parquet(str(topics)) if topics.is_dir() else None,
        Owners.of_files(rings.files(known)) if known.is_dir() else NO_OWNERS,
    )
