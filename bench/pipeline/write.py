"""Rows per second that Spark sends to the topics of a real node: `python -m bench.pipeline.write`.

A node, receivers that keep up (subscribers, which only count what they get) and a local Spark share this machine.
The stream goes from Spark's own generator of rows into the format "skywalker"; the rate of a batch is its rows by the
time from its trigger to its commit, planning and checkpoint included. The table is written from a cached frame.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import socket
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Final

import click

import skywalker
from bench.errors import BenchError
from bench.figures import machine
from bench.pipeline.batches import PATIENCE_S, rates, repeated, show
from skywalker.address import Address
from skywalker.pipeline import session
from skywalker.pipeline.tables.source import TableSource
from skywalker.wire import values
from skywalker.wire.junction import SUBSCRIBE, TRUE, frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: Final[dict[str, tuple[str, ...]]] = {
    "columns": ("value AS n", "concat('word ', value) AS word", "value / 3 AS x"),
    "encoded": ("to_binary('d920' || hex(lpad(value, 32, '0')), 'hex') AS value",),
}
"""What a row is besides its topic: a map of three columns, or an encoded string of 32 bytes."""


def receive(address: str, topics: Sequence[str], pipe: Connection) -> None:
    """Subscribe to the topics and read what comes until the node ends; say when all are subscribed."""
    where = Address.parse(address)
    with socket.create_connection((where.host, where.port)) as sock:
        for number, topic in enumerate(topics):
            sock.sendall(frame(SUBSCRIBE, values.pack(number), values.pack(topic)))
        answers = b"".join(frame(SUBSCRIBE, values.pack(number), TRUE) for number in range(len(topics)))
        heard = b""
        while len(heard) < len(answers):
            heard += sock.recv(65536)
        pipe.send(heard == answers)
        while sock.recv(1 << 18):
            pass


@contextlib.contextmanager
def receivers(address: str, topics: Sequence[str], processes: int) -> Iterator[None]:
    """Have processes that receive, each its share of the topics. Raises BenchError if they don't."""
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        for share in (topics[start::processes] for start in range(processes)):
            ours, theirs = context.Pipe()
            process = context.Process(target=receive, args=(address, share, theirs), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
            if not (ours.poll(PATIENCE_S) and ours.recv()):
                raise BenchError("a receiver did not get its subscriptions")
        yield


def stream(spark: SparkSession, columns: Sequence[str], write: dict[str, Any], batches: int, rows: int) -> list[float]:
    """Return the rows per second of each of `batches` of a stream, after the first few. Raises BenchError."""
    source = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=rows, numPartitions=cores()).load()
    return rates(source.selectExpr(*columns).writeStream.format("skywalker").options(**write), batches)


def table(frame: DataFrame, write: dict[str, Any], runs: int) -> list[float]:
    """Return the rows per second of each write of a table but the first."""
    frame = frame.cache()
    save = frame.write.format("skywalker").options(**write).mode("append").save
    found = repeated(save, frame.count(), runs)
    frame.unpersist()
    return found


def cores() -> int:
    """Return how many partitions are written at a time."""
    return os.cpu_count() or 1


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 1000), default=5, help="Batches, or writes, of which medians are taken.")
@click.option("--rows", type=click.IntRange(1), default=200_000, help="Rows of a batch.")
@click.option("--topics", type=click.IntRange(1), default=16, help="Topics that the rows go to in turn.")
@click.option("--workers", type=click.IntRange(1), default=1, help="Workers of the node.")
@click.option("--receivers", "processes", type=click.IntRange(1), default=1, help="Processes that receive.")
@click.option("--in-flight", type=click.IntRange(1), default=1000, help="maxInFlight.")
def main(runs: int, rows: int, topics: int, workers: int, processes: int, in_flight: int) -> None:
    """Measure the sink of the format "skywalker"."""
    names = [f"t{number}" for number in range(topics)]
    spark = session.local("bench-write")
    spark.dataSource.register(TableSource)
    click.echo(f"\n  {machine.described()}; medians of {runs}, {rows:,} rows each, {topics} topics\n")
    with skywalker.embedded(workers=workers) as node, receivers(node.address, names, processes):
        for kind, dedup in itertools.product(ROWS, ("false", "true")):
            columns = (f"concat('t', value % {topics}) AS topic", *ROWS[kind])
            write = {"address": node.address, "maxInFlight": in_flight, "dedup": dedup}
            show(f"stream of {kind}, dedup={dedup}", stream(spark, columns, write, runs, rows))
            frame = spark.range(0, rows, 1, cores()).toDF("value").selectExpr(*columns)
            show(f"table of {kind}, dedup={dedup}", table(frame, write, runs))
    spark.stop()


if __name__ == "__main__":
    main()
