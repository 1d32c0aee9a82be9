"""Rows per second that Spark reads from the topics of a real node: `python -m bench.pipeline.read`.

A node, feeders that always have sends waiting and a local Spark share this machine. The stream goes into Spark's
"noop" sink; the rate of a batch is its rows by the time from its trigger to its commit, waiting for rows, planning
and checkpoint included. The table is counted.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import socket
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

import skywalker
from bench.figures import machine
from bench.pipeline.batches import rates, repeated, show
from skywalker.address import Address
from skywalker.pipeline import session
from skywalker.pipeline.tables.source import TableSource
from skywalker.wire import values
from skywalker.wire.junction import SEND, TRUE, frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ_BYTES: Final = 1 << 18

SCHEMAS: Final = {"columns": "topic STRING, n BIGINT, word STRING, x DOUBLE", "encoded": "topic STRING, value BINARY"}
"""What is read of a map with three keys, of 27 bytes: its values, or the map as it is."""

VALUE: Final = values.pack({"n": 1234567, "word": "word", "x": 0.5})


def feed(address: str, topics: Sequence[str], in_flight: int) -> None:
    """Keep so many sends waiting, in turn on all topics, until the node ends. All bear one id: they are counted."""
    where = Address.parse(address)
    id = values.pack(0)
    calls = [frame(SEND, id, values.pack(86_400_000), values.pack(topic), VALUE) for topic in topics]
    answer = len(frame(SEND, id, TRUE))
    heard, turn = 0, 0
    with socket.create_connection((where.host, where.port)) as sock:
        due = in_flight
        while True:
            # Calls differ in length only by their topic, so they are joined anew each time, and that is quick.
            sock.sendall(b"".join(itertools.islice(itertools.cycle(calls), turn, turn + due)))
            turn = (turn + due) % len(calls)
            data = sock.recv(READ_BYTES)
            if not data:
                return
            due, heard = divmod(heard + len(data), answer)


@contextlib.contextmanager
def feeders(address: str, topics: Sequence[str], processes: int, in_flight: int) -> Iterator[None]:
    """Have processes that feed all topics."""
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        for _ in range(processes):
            process = context.Process(target=feed, args=(address, topics, in_flight), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(process.terminate)
        yield


def stream(spark: SparkSession, schema: str, read: dict[str, Any], batches: int) -> list[float]:
    """Return the rows per second of each of `batches` of a stream, after the first few. Raises BenchError."""
    source = spark.readStream.format("skywalker").options(**read).schema(schema).load()
    return rates(source.writeStream.format("noop"), batches)


def table(spark: SparkSession, schema: str, read: dict[str, Any], runs: int) -> list[float]:
    """Return the rows per second of each read of a table but the first."""
    source = spark.read.format("skywalker").options(**read).schema(schema)
    return repeated(lambda: source.load().write.format("noop").mode("append").save(), read["rowsPerBatch"], runs)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 90), default=5, help="Batches, or reads, of which medians are taken.")
@click.option("--rows", type=click.IntRange(1), default=200_000, help="rowsPerBatch.")
@click.option("--partitions", type=click.IntRange(1), default=1, help="partitions.")
@click.option("--topics", type=click.IntRange(1), default=1, help="Topics that the rows come from.")
@click.option("--workers", type=click.IntRange(1), default=1, help="Workers of the node.")
@click.option("--feeders", "processes", type=click.IntRange(1), default=1, help="Processes that send.")
@click.option("--in-flight", type=click.IntRange(1), default=4000, help="Sends that wait, of each of them.")
@click.option("--method", type=click.Choice(["take", "recv"]), default="take", help="method.")
def main(
    runs: int, rows: int, partitions: int, topics: int, workers: int, processes: int, in_flight: int, method: str
) -> None:
    """Measure the source of the format "skywalker"."""
    names = [f"t{number}" for number in range(topics)]
    spark = session.local("bench-read")
    spark.dataSource.register(TableSource)
    click.echo(f"\n  {machine.described()}; medians of {runs}, {rows:,} rows each, {topics} topics\n")
    with (
        skywalker.embedded(workers=workers) as node,
        feeders(node.address, names, processes, in_flight),
        tempfile.TemporaryDirectory(prefix="skywalker-bench-") as spools,
    ):
        read = {"address": node.address, "topics": ",".join(names), "method": method, "partitions": partitions}
        read["rowsPerBatch"] = rows
        for kind, schema in SCHEMAS.items():
            show(f"stream of {kind}", stream(spark, schema, read, runs))
            with_spool = {**read, "spool": f"{spools}/{kind}"}
            show(f"stream of {kind}, with a spool", stream(spark, schema, with_spool, runs))
            show(f"table of {kind}", table(spark, schema, read, runs))
    spark.stop()


if __name__ == "__main__":
    main()
