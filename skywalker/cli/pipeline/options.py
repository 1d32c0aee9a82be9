"""What the commands on Spark have in common: where calls come from, what Spark gets, and where tables go."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from skywalker.errors import ConfigError
from skywalker.limits import MIB
from skywalker.pipeline.jobs.defaults import PER_CORE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

F = TypeVar("F", bound=Callable[..., Any])

FORMATS: Final = ("parquet", "csv", "json")

DRIVER_MEMORY: Final = "1536m"
"""Of the JVM's heap: tasks write to disk what they cannot hold."""

LONG_BYTES: Final = 128 * MIB
"""From so much input on LONG pays, and up to it SHORT."""

SHORT: Final = {
    # To plan anew after each stage, and to divide what is small, takes longer than the work itself.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings of a local Spark that has little to do."""

LONG: Final = {
    # Java makes better code, which takes longer to make.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4",
    # Parts that fit in memory; Spark joins them where they are small.
    "spark.sql.shuffle.partitions": "16",
}
"""Settings of a local Spark that has much to do."""


def input_option(command: F) -> F:
    """Add --input; the command gets it as `input`, a path."""
    return click.option(
        "--input",
        "input",
        required=True,
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="a journal, or what 'ingest' made of one",
    )(command)


def ring_option(command: F) -> F:
    """Add --ring; the command gets it as `ring`, a path or None."""
    return click.option(
        "--ring",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="what 'skywalker ring --json' printed; without, owners are those that the records show",
    )(command)


def per_core_option(command: F) -> F:
    """Add --per-core; the command gets it as `per_core`, calls a second."""
    return click.option(
        "--per-core",
        type=click.FloatRange(0, min_open=True),
        default=PER_CORE,
        show_default=True,
        help="calls a second that one core answers",
    )(command)


def spark_options(command: F) -> F:
    """Add --cores and --memory; the command gets them by these names, for session()."""
    for option in (
        click.option(
            "--memory",
            default=DRIVER_MEMORY,
            show_default=True,
            metavar="SIZE",
            help="heap of a local Spark, such as 4g",
        ),
        click.option("--cores", type=click.IntRange(min=1), help="cores of a local Spark  [default: all]"),
    ):
        command = option(command)
    return command


@contextlib.contextmanager
def session(name: str, cores: int | None, memory: str, inputs: Iterable[Path]) -> Iterator[SparkSession]:
    """Give the Spark for a command that reads `inputs`: a local one, which ends with the block, or the one there is.

    Raises ConfigError if it cannot run.
    """
    from skywalker.pipeline.session import local

    settings = {"spark.driver.memory": memory, **(LONG if _size(inputs) > LONG_BYTES else SHORT)}
    loaded = sys.modules.get("pyspark.sql")
    is_ours = loaded is None or loaded.SparkSession.getActiveSession() is None
    spark = local(f"skywalker pipeline {name}", cores, **settings)
    try:
        yield spark
    finally:
        if is_ours:
            spark.stop()


def _size(paths: Iterable[Path]) -> int:
    """Return the bytes of files and of what is in directories."""
    files = (file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]))
    total = 0
    for file in files:
        with contextlib.suppress(OSError):  # the journal has just given it up
            total += file.stat().st_size
    return total


_OF_A_TABLE: Final = re.compile(r"\.?(part-|_SUCCESS|_temporary)")
"""What the names begin with that Spark, or a report, writes; the last is left by a job that was killed."""


def save(table: DataFrame, directory: Path, format: str) -> None:
    """Write a table in place of the one in `directory`.

    Raises ConfigError if it cannot be written, or if there is anything else, which Spark would delete.
    """
    from pyspark.errors import PySparkException

    try:
        others = [path.name for path in directory.iterdir() if not _OF_A_TABLE.match(path.name)]
    except FileNotFoundError:
        others = []
    except OSError as error:  # as of a file, which Spark would delete, too
        raise ConfigError(f"cannot write a table to {str(directory)!r}: {error.strerror}") from error
    if others:
        raise ConfigError(
            f"{str(directory)!r} holds {min(others)!r}, which is of no table, and all in it would be deleted: "
            "name a directory that is new, or has only such a table"
        )
    try:
        table.write.mode("overwrite").format(format).options(header=True).save(str(directory))
    except PySparkException as error:
        raise ConfigError(f"cannot write to {str(directory)!r}: {str(error).splitlines()[0]}") from error
