"""Where the calls are that jobs study: what `ingest` made, or a journal itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skywalker.errors import ConfigError
from skywalker.journal.header import CALLS, NAMES
from skywalker.journal.segments import files
from skywalker.pipeline.journals.columns import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Input(NamedTuple):
    """Calls, and the names of topics if there are any."""

    calls: DataFrame
    names: DataFrame | None


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
        return Input(journal.load(str(directory)), journal.option("kind", NAMES).load(str(directory)))
    # With their schema, they may be empty.
    calls = spark.read.schema(schema_of(CALLS).add("date", "date")).parquet(str(directory / CALLS))
    names = directory / NAMES
    return Input(calls, spark.read.schema(schema_of(NAMES)).parquet(str(names)) if names.is_dir() else None)
