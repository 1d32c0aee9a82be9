"""The tables of a report: made by the jobs, in as few passes over the calls as it takes, and kept as Parquet.

Calls are only read by what makes few rows of them; nothing here collects more than a picture shows.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from skywalker.errors import ConfigError
from skywalker.pipeline.jobs.balance import balance
from skywalker.pipeline.jobs.capacity import capacity
from skywalker.pipeline.jobs.counts import MET, condense, count, forwarded, step_of, stepped
from skywalker.pipeline.jobs.defaults import NODES, PER_CORE
from skywalker.pipeline.jobs.forwarding import forwarding
from skywalker.pipeline.jobs.latency import latency
from skywalker.pipeline.jobs.timeouts import timeouts
from skywalker.pipeline.jobs.topics import topics
from skywalker.pipeline.jobs.unmatched import unmatched

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from skywalker.pipeline.jobs.inputs import Input

STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
MOST_STEPS: Final = 300
"""Points of a line over time: about as many as a picture can show."""

HOT: Final = 20
"""Topics that are shown."""

BANDS_LOG2: Final = 6
"""The ring is cut into 2 to the power of so many equal bands for the heat map."""

Step = Callable[[str], AbstractContextManager[None]]
"""Given what is done now, returns a context that lasts as long."""


def silent(words: str) -> AbstractContextManager[None]:
    """Tell nobody."""
    return contextlib.nullcontext()


class Tables:
    """Every table by its name, in a directory and, as far as it is shown, in memory."""

    def __init__(self, directory: Path, called: Callable[[str], str]) -> None:
        """What is shown has nodes as they are `called`, by their ids."""
        self._directory = directory
        self._called = called
        self.shown: dict[str, pd.DataFrame] = {}
        self.seconds = STEPS_S[0]  # length of a step in time

    def write(self, name: str, table: DataFrame) -> DataFrame:
        """Make a table and write it; return what is written."""
        path = str(self._directory / name)
        table.write.mode("overwrite").parquet(path)
        return table.sparkSession.read.schema(table.schema).parquet(path)

    def keep(self, name: str, table: DataFrame) -> None:
        """Make a table of few rows, write it, and show it."""
        import pyarrow.parquet as pq

        made = table.toArrow()
        directory = self._directory / name
        # What is small is soon here, while Spark takes several jobs to write it and to read it again.
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        pq.write_table(made, directory / "part-0.parquet")
        self.show(name, made)

    def show(self, name: str, made: pa.Table) -> None:
        """Show a table, of which all times are in UTC, without saying so."""
        shown: pd.DataFrame = made.to_pandas()
        for column in shown.select_dtypes("datetimetz"):
            shown[column] = shown[column].dt.tz_convert(None)
        for column in (column for column in NODES if column in shown):
            shown[column] = shown[column].map(self._called, na_action="ignore")
        self.shown[name] = shown


def gather(found: Input, directory: Path, step: Step, per_core: float = PER_CORE) -> Tables:
    """Make all tables of a report in `directory`. Raises ConfigError if there are no calls."""
    calls, names, owners = found
    tables = Tables(directory, owners.called)
    with step("calls a second"), _kept(condense(stepped(calls, 1), ["time"])) as seconds:
        first, last = seconds.agg(F.min(F.unix_seconds("time")), F.max(F.unix_seconds("time"))).collect()[0]
        if first is None:
            raise ConfigError("there are no calls to report on")
        tables.seconds = _step(last - first + 1)
        tables.keep("capacity", capacity(seconds, per_core, tables.seconds))
    with step("what became of calls over time"), _kept(_by_step(calls, tables.seconds)) as by_step:
        tables.keep("rates", _rates(by_step))
        tables.keep("forwarding", forwarding(by_step))
        tables.keep(
            "methods", by_step.groupBy("method", "outcome").agg(count().alias("calls")).orderBy("method", "outcome")
        )
    with step("waits over time"):
        tables.keep(
            "waits_over_time", latency(calls, by=("minute",), seconds=tables.seconds).orderBy("measure", "time")
        )
    with step("waits of workers"):
        tables.keep("waits_of_workers", latency(calls, by=("worker",)).orderBy("measure", "node", "worker"))
    with step("tokens against time"):
        tables.keep("heat", _heat(calls, tables.seconds))
    with step("hot topics"):
        hot = tables.write("topics", topics(calls, names).coalesce(1)).limit(HOT).toArrow()
        tables.show("topics", hot)
    with step("causes of timeouts"):
        tables.keep("timeouts", timeouts(calls))
    with step("balance"):
        tables.keep("balance", balance(calls, owners))
    with step("waits of hot topics"):
        among = F.col("token").isin(*hot["token"].to_pylist())
        tables.keep("waits_of_topics", latency(calls.where(among), names, ("topic",)))
    with step("who missed whom"):
        pairs = tables.write("unmatched", unmatched(calls, names))
        tables.keep("unmatched_places", _places(pairs))
    return tables


def _step(span: int) -> int:
    return next((step for step in STEPS_S if span <= step * MOST_STEPS), STEPS_S[-1])


def _by_step(calls: DataFrame, seconds: int) -> DataFrame:
    return condense(stepped(calls, seconds), ["time", "node", "worker", "method", "outcome", "route"])


def _rates(by_step: DataFrame) -> DataFrame:
    outcome = F.col("outcome")
    return (
        by_step.groupBy("time")
        .agg(
            count(outcome == "prompt").alias("prompt"),
            count(outcome == "met").alias("met"),
            count(outcome == "timed-out").alias("timed_out"),
            count(~outcome.isin(*MET, "timed-out")).alias("other"),
            count(forwarded()).alias("forwarded"),
        )
        .orderBy("time")
    )


def _heat(calls: DataFrame, seconds: int) -> DataFrame:
    """Return calls by step and band of the ring: band 0 begins at the lowest token."""
    band = (F.shiftright("token", 64 - BANDS_LOG2) + 2 ** (BANDS_LOG2 - 1)).cast("int")
    return calls.groupBy(step_of("time", seconds).alias("time"), band.alias("band")).agg(count().alias("calls"))


def _places(pairs: DataFrame) -> DataFrame:
    """Return how many receivers missed a sender, by the workers that both were at."""
    columns = ["recv_node", "recv_worker", "send_node", "send_worker"]
    same = (F.col("recv_ring") == F.col("send_ring")).alias("same_ring")
    missed = pairs.groupBy(*columns, same).agg(
        F.sum("sample").alias("receivers"),
        F.max("overlap_us").alias("longest_us"),
        F.count_distinct("token").alias("topics"),
    )
    return missed.orderBy(F.desc("receivers"), *columns)


@contextlib.contextmanager
def _kept(table: DataFrame) -> Iterator[DataFrame]:
    """Make a table once for all that is made of it in the block. On disk: it may be large, and memory is not ours."""
    kept = table.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()
