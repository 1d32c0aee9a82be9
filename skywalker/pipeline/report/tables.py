"""The tables of a report: made by the jobs, in as few passes over the calls as it takes, and kept as Parquet.

Calls are only read by what makes few rows of them; nothing here collects more than a picture shows.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import inheritable_thread_target
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
    from pyspark.sql import DataFrame, SparkSession

    from skywalker.pipeline.jobs.inputs import Input

STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
MOST_STEPS: Final = 300
"""Points of a line over time: about as many as a picture can show."""

AT_ONCE: Final = 3
"""Tables that are made at a time."""

_OF_STEPS: Final = ("time", "node", "worker", "method", "outcome", "route")

HOT: Final = 20
"""Topics that are shown."""

BANDS_LOG2: Final = 6
"""The ring is cut into 2 to the power of so many equal bands for the heat map."""

Step = Callable[[str], AbstractContextManager[None]]
"""Given what is done now, returns a context that lasts as long. There may be several at a time, each in a thread."""


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
    with _kept(condense(stepped(calls, 1), ["time"])) as seconds:
        with step("calls a second"):
            first, last = seconds.agg(F.min(F.unix_seconds("time")), F.max(F.unix_seconds("time"))).collect()[0]
            if first is None:
                raise ConfigError("there are no calls to report on")
            tables.seconds = _step(last - first + 1)
        # What takes longest is begun first.
        _at_once(
            calls.sparkSession,
            step,
            {
                "hot topics": lambda: _hot_topics(tables, calls, names),
                "balance": lambda: tables.keep("balance", balance(calls, owners)),
                "causes of timeouts": lambda: tables.keep("timeouts", timeouts(calls)),
                "what became of calls over time": lambda: _over_time(tables, calls),
                "waits over time": lambda: tables.keep(
                    "waits_over_time",
                    latency(calls, by=("minute",), seconds=tables.seconds).orderBy("measure", "time"),
                ),
                "who missed whom": lambda: tables.keep(
                    "unmatched_places", _places(tables.write("unmatched", unmatched(calls, names)))
                ),
                "waits of workers": lambda: tables.keep(
                    "waits_of_workers", latency(calls, by=("worker",)).orderBy("measure", "node", "worker")
                ),
                "capacity": lambda: tables.keep("capacity", capacity(seconds, per_core, tables.seconds)),
                "tokens against time": lambda: tables.keep("heat", _heat(calls, tables.seconds)),
            },
        )
    return tables


def _at_once(spark: SparkSession, step: Step, parts: Mapping[str, Callable[[], None]]) -> None:
    """Make the parts of a report, each in a `step` by its name, some at a time.

    Spark plans a query on one core. Where little is to be computed, that is most of the work, and several queries at a
    time use what cores there are.
    """

    def make(name: str, part: Callable[[], None]) -> None:
        with step(name):
            part()

    # What the caller has set for jobs of this thread, such as their group, holds for those of the report.
    inherits = inheritable_thread_target(spark)
    pool = ThreadPoolExecutor(AT_ONCE, "report")
    try:
        for each in as_completed([pool.submit(inherits(make), name, part) for name, part in parts.items()]):
            each.result()
    except Exception:
        pool.shutdown(cancel_futures=True)  # the caller may do away with what others still write to
        raise
    finally:
        # Who interrupts it does not wait for them: they end as their Spark does.
        pool.shutdown(wait=False, cancel_futures=True)


def _over_time(tables: Tables, calls: DataFrame) -> None:
    with _kept(condense(stepped(calls, tables.seconds), _OF_STEPS)) as by_step:
        tables.keep("rates", _rates(by_step))
        tables.keep("forwarding", forwarding(by_step))
        tables.keep(
            "methods", by_step.groupBy("method", "outcome").agg(count().alias("calls")).orderBy("method", "outcome")
        )


def _hot_topics(tables: Tables, calls: DataFrame, names: DataFrame | None) -> None:
    hot = tables.write("topics", topics(calls, names).coalesce(1)).limit(HOT).toArrow()
    tables.show("topics", hot)
    among = F.col("token").isin(*hot["token"].to_pylist())
    tables.keep("waits_of_topics", latency(calls.where(among), names, ("topic",)))


def _step(span: int) -> int:
    return next((step for step in STEPS_S if span <= step * MOST_STEPS), STEPS_S[-1])


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
