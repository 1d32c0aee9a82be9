"""Rows per second of the batches of a stream, and of reads or writes of a table, and how they are shown."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from bench.errors import BenchError

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

WARM_UP: Final = 2
"""Batches whose rate does not count: Spark compiles, and starts its Python workers."""

PATIENCE_S: Final = 60.0


def rates(writer: DataStreamWriter, batches: int) -> list[float]:
    """Start a stream; return the rows per second of each of `batches`, after the first few. Raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="skywalker-bench-") as checkpoint:
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            deadline = time.monotonic() + PATIENCE_S + batches * 5
            while query.isActive and len(_done(query)) < WARM_UP + batches and time.monotonic() < deadline:
                time.sleep(0.1)
            done = _done(query)[WARM_UP : WARM_UP + batches]
        finally:
            query.stop()
        if len(done) < batches:
            raise BenchError(f"the stream made {len(done)} batches of {batches}: {query.exception()}")
    return [progress.numInputRows / progress.durationMs["triggerExecution"] * 1000 for progress in done]


def repeated(act: Callable[[], None], rows: int, runs: int) -> list[float]:
    """Return the rows per second of each run of what reads or writes so many, but for a first one."""
    found = []
    for _ in range(runs + 1):
        started = time.monotonic()
        act()
        found.append(rows / (time.monotonic() - started))
    return found[1:]


def show(what: str, rates: list[float]) -> None:
    """Print the median of rates, and between which they are."""
    text = f"{statistics.median(rates):>10,.0f} rows/s   ({min(rates):,.0f} to {max(rates):,.0f})"
    click.echo(f"  {what:<32}{text}")


def _done(query: StreamingQuery) -> list[StreamingQueryProgress]:
    return [progress for progress in query.recentProgress if progress.numInputRows]
