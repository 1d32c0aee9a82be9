"""The data pipeline, on Spark: topics as tables, the journal as a table, and the jobs that study traffic.

Nothing here is imported by nodes or clients. It needs the extra `spark` and a Java 17 or newer.

    tables            the format "skywalker": values of topics, read and written, in batches and as streams
    journals          the format "skywalker-journal": what the workers wrote under `skywalker serve --journal`
    options mistakes  what both formats take from their users, and how they say that it is wrong, or data are lost
    jobs report       what is asked of recorded calls, and all answers on one page with plots
    planner tokens    what a cluster would be like, without Spark; the token of each topic of a column
    session           one Spark for a command or a test
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]

_PATH: Final = "PYTHONPATH"


def register(spark: SparkSession) -> None:
    """Make the formats "skywalker" and "skywalker-journal" known to `spark`.

    Spark finds both by itself where this package is installed for its driver and its workers; a session that got the
    package in another way (--py-files, artifacts of Spark Connect) has to be told.
    """
    from skywalker.pipeline.journals.source import JournalSource
    from skywalker.pipeline.tables.source import TableSource

    with _found_by_streams(spark):
        spark.dataSource.register(TableSource)
        spark.dataSource.register(JournalSource)


@contextlib.contextmanager
def _found_by_streams(spark: SparkSession) -> Iterator[None]:
    """What is registered meanwhile finds this package, also if that is a zip of --py-files or of addPyFile().

    Spark 4.3 looks for such a file in the wrong directory in the one process that plans a stream. What a source is
    registered with is the environment, as it is then, of all processes that are started for it.
    """
    from pyspark.sql.utils import is_remote

    place = Path(__file__).absolute().parents[2]
    if is_remote() or not place.is_file():
        yield
        return
    environment = spark.sparkContext.environment
    before = environment.get(_PATH)
    environment[_PATH] = os.pathsep.join(filter(None, (str(place), before)))
    try:
        yield
    finally:
        if before is None:
            del environment[_PATH]
        else:
            environment[_PATH] = before
