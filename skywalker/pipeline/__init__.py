"""The data pipeline, on Spark: topics as tables, the journal as a table, and the jobs that study traffic.

Nothing here is imported by nodes or clients. It needs the extra `spark` and a Java 17 or newer.

    tables            the format "skywalker": values of topics, read and written, in batches and as streams
    journals          the format "skywalker-journal": what the workers wrote under `skywalker serve --journal`
    options losses    what both formats take from their users, and say of data that should be there and is not
    jobs report       what is asked of recorded calls, and all answers on one page with plots
    planner tokens    what a cluster would be like, without Spark; the token of each topic of a column
    session           one Spark for a command or a test
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make the formats "skywalker" and "skywalker-journal" known to `spark`.

    Spark finds both by itself where this package is installed for its driver and its workers; a session that got the
    package in another way (--py-files, artifacts of Spark Connect) has to be told.
    """
    from skywalker.pipeline.journals.source import JournalSource
    from skywalker.pipeline.tables.source import TableSource

    spark.dataSource.register(TableSource)
    spark.dataSource.register(JournalSource)
