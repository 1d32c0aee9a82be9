"""The demo's second half: words counted by Spark, from one topic to another, while a file's lines come in.

A feeder sends the lines to a topic. A streaming query takes them from there, counts words, and sends the counts to
another topic with every batch, from where they are taken and shown. In the end they are held against what Spark
counts in the same lines without any topic.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skywalker.cli.demo.page import Page
from skywalker.cli.demo_pipeline.feeder import LINES, Feeder
from skywalker.cli.demo_pipeline.tally import COUNTS, Tally
from skywalker.cli.demo_pipeline.view import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_LINES: Final = 20_000
PIECE: Final = 16_384
"""Bytes at which a longer line is cut."""

SECONDS: Final = 5.0
"""For which the lines come in, so that there is something to be seen."""

PATIENCE_S: Final = 60.0
"""Seconds after the last line for all counts to be there."""

LOOK_S: Final = 0.1
"""Between two looks at how far it is."""


def word_count(
    address: str, file: Path, *, spark: SparkSession | None = None, page: Page | None = None, seconds: float = SECONDS
) -> bool:
    """Count the words of `file` by way of two topics of the node at `address`; return whether the counts are right.

    The lines, 20,000 at most, come in over `seconds`. Without `spark` a local session is used, or the one there is.
    Raises ConfigError if Spark or Java is missing, Unreachable if the node is.
    """
    from skywalker.pipeline import session
    from skywalker.pipeline.tables.source import TableSource

    view = View(page or Page())
    spark = spark or session.local("skywalker demo")
    spark.dataSource.register(TableSource)
    lines = lines_of(file)
    view.start(file, len(lines))
    expected = {
        row.word: row["count"]
        for row in counts(spark.createDataFrame([(line,) for line in lines], "value STRING")).collect()
    }
    with Tally.started(address) as tally, counting(spark, address) as query, Feeder(address, lines, seconds) as feeder:
        deadline = feeder.started + seconds + PATIENCE_S
        while True:
            found = tally.now()
            view.now(feeder.sent, found, feeder.seconds())
            if found == expected or feeder.failed or not query.isActive or time.monotonic() > deadline:
                break
            time.sleep(LOOK_S)
        took = feeder.seconds()
        if found == expected:
            query.processAllAvailable()  # a query that is stopped in the middle of a batch complains
        error = feeder.failed or query.exception()
    view.outcome(feeder.sent, found, expected, took, error)
    return found == expected


def lines_of(file: Path) -> list[str]:
    """Return the first lines of a file."""
    with file.open("rb") as stream:
        pieces = iter(lambda: stream.readline(PIECE), b"")
        return [line.decode(errors="replace") for line, _ in zip(pieces, range(MOST_LINES), strict=False)]


def counts(lines: DataFrame) -> DataFrame:
    """Return how often each word is in the column `value`."""
    words = lines.selectExpr(r"explode(regexp_extract_all(lower(value), r'(\p{L}+)', 1)) AS word")
    return words.groupBy("word").count()


@contextlib.contextmanager
def counting(spark: SparkSession, address: str) -> Iterator[StreamingQuery]:
    """Run the streaming query: with every batch it sends all counts so far."""
    table = spark.readStream.format("skywalker").schema("value STRING").options(address=address, topic=LINES).load()
    with tempfile.TemporaryDirectory(prefix="skywalker-demo-") as checkpoint:
        writer = counts(table).writeStream.format("skywalker").options(address=address, topic=COUNTS)
        query = writer.outputMode("complete").option("checkpointLocation", checkpoint).start()
        try:
            yield query
        finally:
            query.stop()
