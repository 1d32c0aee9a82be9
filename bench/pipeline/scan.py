"""How fast Spark reads a journal, and the same records as Parquet: `python -m bench.pipeline.scan`.

Each scan has every column of every record come to Spark and be looked at; the medians of three
after one that is not counted, the ways in turn. On a machine that does something else as well,
what a core-second brings says more than what a second does.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import numpy as np

from bench.figures.machine import described
from bench.figures.samples import table
from bench.servers.usage import cpu_seconds
from skywalker.journal.header import CALLS, Header
from skywalker.journal.reading import RECORD
from skywalker.journal.segments import Segment
from skywalker.pipeline import session
from skywalker.pipeline.journals.source import FORMAT, JournalSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEGMENT_RECORDS: Final = 2_000_000
"""Of 32 bytes each: what fits in the 64 MiB at which a worker ends a file."""

FEW: Final = "time TIMESTAMP, token BIGINT, wait_us BIGINT"

ROUNDS: Final = 3

_NS: Final = 1_000_000_000


def make(directory: Path, count: int, workers: int = 2) -> None:
    """Write a journal of so many records: exponential waits, Zipf's topics, methods and outcomes as under load."""
    directory.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1)
    opened = 1_750_000_000 * _NS
    tokens = random.integers(-(2**63), 2**63 - 1, 100_000)
    for number, first in enumerate(range(0, count, SEGMENT_RECORDS)):
        size = min(SEGMENT_RECORDS, count - first)
        made = np.zeros(size, RECORD)
        made["ended"] = np.cumsum(random.exponential(1e-5, size))
        made["token"] = tokens[random.zipf(1.1, size) % len(tokens)]
        made["wait"] = random.exponential(0.002, size)
        made["size"] = random.integers(1, 1000, size)
        made["connection"] = random.integers(0, 200, size)
        made["method"] = random.integers(1, 4, size)
        made["outcome"] = random.choice(np.array([1, 2, 3], dtype=np.uint8), size, p=[0.5, 0.45, 0.05])
        made["route"] = random.integers(0, 2, size)
        made["door"] = 1
        header = Header(
            CALLS, "node", f"{1:032x}", "bench", number % workers, f"{1:016x}", opened, opened + number * _NS
        )
        segment = Segment(directory, header)
        segment.write(made.tobytes())
        segment.close(dropped=0)


def look_at_all(frame: DataFrame) -> None:
    """Have every column of a frame made, and nothing kept."""
    frame.write.format("noop").mode("overwrite").save()


def aggregate(frame: DataFrame) -> None:
    """Have a figure made of a frame's waits."""
    frame.groupBy().sum("wait_us").collect()


def rates(ways: dict[str, Callable[[], None]], count: int) -> Iterator[tuple[str, str, str, str]]:
    """Run each way in turn; yield what it is called, its median in M records/s, what a core does, and all of them."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    used: dict[str, list[float]] = {name: [] for name in ways}
    for round in range(ROUNDS + 1):
        for name, run in ways.items():
            began, cpu = time.perf_counter(), cpu_seconds(os.getpid())
            run()
            if round:
                taken[name].append(count / (time.perf_counter() - began) / 1e6)
                used[name].append(count / (cpu_seconds(os.getpid()) - cpu) / 1e6)
    for name, found in taken.items():
        all_of_it = " ".join(f"{rate:.2f}" for rate in found)
        yield name, f"{statistics.median(found):.2f}", f"{statistics.median(used[name]):.2f}", all_of_it


def ways(spark: SparkSession, journal: Path, parquet: Path) -> dict[str, Callable[[], None]]:
    """Return what is measured, by name."""
    source = spark.read.format(FORMAT)
    whole = source.load(str(journal))
    few = spark.read.format(FORMAT).schema(FEW).load(str(journal))
    stored = spark.read.parquet(str(parquet))
    return {
        "journal, every column": lambda: look_at_all(whole),
        "journal, sum of waits of every column": lambda: aggregate(whole),
        "journal, 3 columns by schema()": lambda: look_at_all(few),
        "Parquet, every column": lambda: look_at_all(stored),
        "Parquet, sum of waits": lambda: aggregate(stored),
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--records", type=click.FloatRange(0.001), default=8.0, metavar="M", help="millions of records")
@click.option("--cores", type=click.IntRange(1), default=2, help="cores that Spark uses")
@click.option("--directory", type=click.Path(path_type=Path), help="where to put them; by default where they go away")
def scan(records: float, cores: int, directory: Path | None) -> None:
    """Make a journal, and Parquet of it, and measure how fast Spark reads each."""
    count = int(records * 1e6)
    with contextlib.nullcontext(directory) if directory else tempfile.TemporaryDirectory() as home:
        journal, parquet = Path(home, "journal"), Path(home, "parquet")
        if not journal.exists():
            make(journal, count)
        # A scan is long enough for the JVM's better compiler.
        conf = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=4"}
        spark = session.local("bench.pipeline.scan", cores, **conf)
        try:
            spark.dataSource.register(JournalSource)
            if not parquet.exists():
                spark.read.format(FORMAT).load(str(journal)).write.parquet(str(parquet))
            files = len([*journal.iterdir()])
            click.echo(f"{described()}; Spark {spark.version} on {cores} cores")
            click.echo(f"{count:,} records in {files} files; medians of {ROUNDS}")
            for line in table(
                ("scan", "M records/s", "M per core-second", "all"), [*rates(ways(spark, journal, parquet), count)]
            ):
                click.echo(line)
        finally:
            spark.stop()


if __name__ == "__main__":
    scan()
