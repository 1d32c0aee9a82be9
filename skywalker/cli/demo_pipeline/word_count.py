"""The demo's second half: words counted by Spark, from one topic to another, while a file's lines come in.

A feeder sends the lines to a topic. A streaming query takes them from there, counts words, and sends the counts to
another topic with every batch, from where they are taken and shown. In the end they are held against what Spark
counts in the same lines without any topic.
"""

from __future__ import annotations

import collections
import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import skywalker
from skywalker.cli import terminal
from skywalker.cli.demo.screen import BAR, INDENT, LABEL, Page, counted
from skywalker.errors import Closed, SkywalkerError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LINES: Final = "demo/lines"
"""The topic."""

IN_FLIGHT: Final = 64
"""Sends at a time."""


class Feeder:
    """Sends lines to a topic, evenly spread over some seconds, within a `with` statement."""

    def __init__(self, address: str, lines: list[str], seconds: float) -> None:
        self.sent = 0
        self.failed: SkywalkerError | None = None
        self.started = time.monotonic()
        self._junction = skywalker.connect(address)
        self._lines = lines
        self._pause = seconds / max(1, len(lines))
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._junction.close()
        self._thread.join()

    def seconds(self) -> float:
        """Return how long it has been sending."""
        return time.monotonic() - self.started

    def _feed(self) -> None:
        calls = collections.deque[skywalker.Pending]()
        try:
            for number, line in enumerate(self._lines):
                time.sleep(max(0.0, self.started + number * self._pause - time.monotonic()))
                calls.append(self._junction.begin("send", LINES, line))
                while calls and (len(calls) >= IN_FLIGHT or calls[0].done()):
                    self._delivered(calls.popleft())
            while calls:
                self._delivered(calls.popleft())
        except Closed:
            pass  # it is over
        except SkywalkerError as error:
            self.failed = error

    def _delivered(self, call: skywalker.Pending) -> None:
        call.result()
        self.sent += 1


COUNTS: Final = "demo/counts"
"""The topic."""

TAKES: Final = 64
TAKE_S: Final = 3600.0
"""Of calls at a time, each: longer than the demo, since a count that comes just when its call ends would be lost."""


class Tally:
    """Takes counts from a topic. A word's count only grows, so the highest is right, in whatever order they come."""

    def __init__(self, junction: skywalker.Client) -> None:
        self._counts: dict[str, int] = {}
        self._junction = junction
        self._thread = threading.Thread(target=self._take, daemon=True)

    @classmethod
    @contextlib.contextmanager
    def started(cls, address: str) -> Iterator[Self]:
        """Have one that takes. Raises Unreachable if there is no node."""
        tally = cls(skywalker.connect(address))
        tally._thread.start()
        try:
            yield tally
        finally:
            tally._junction.close()
            tally._thread.join()

    def now(self) -> dict[str, int]:
        """Return the counts so far."""
        return self._counts.copy()

    def _take(self) -> None:
        with contextlib.suppress(Closed):
            calls = collections.deque(self._begin() for _ in range(TAKES))
            while True:
                self._add(calls.popleft().result())
                calls.append(self._begin())

    def _begin(self) -> skywalker.Pending:
        return self._junction.begin("take", COUNTS, timeout=TAKE_S)

    def _add(self, message: Mapping[str, int]) -> None:
        word, count = str(message["word"]), message["count"]
        self._counts[word] = max(count, self._counts.get(word, 0))


LINE_S: Final = 1.0
"""Between two lines about how far it is where there is no terminal."""

STARTING: Final = "  (Spark is starting the stream: some seconds)"
"""Why no word is counted yet."""

TOP: Final = 8
WIDEST: Final = 16
"""Columns for a word."""


class View:
    """Shows the words that are counted most often: on a terminal drawn over themselves, elsewhere in the end."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._drawn = 0  # lines that are to be drawn over
        self._shown_at = 0.0

    def start(self, file: Path, lines: int) -> None:
        """Show what is counted, and on which way."""
        self._page.row("text", str(file))
        self._page.row("route", self._page.flow(counted(lines, "line"), f"topic {LINES}", "Spark", f"topic {COUNTS}"))
        self._page.write("\n")

    def now(self, lines: int, counts: Mapping[str, int], seconds: float) -> None:
        """Show how far it is."""
        numbers = f"{seconds:6.1f} s  {lines:>8,} lines  {sum(counts.values()):>9,} words"
        if not counts:
            numbers += STARTING
        if not self._page.live:
            if seconds >= self._shown_at + LINE_S:
                self._shown_at = seconds
                self._page.write(f"{INDENT}{numbers}\n")
            return
        self._clear()
        rows = [numbers, "", *self._bars(counts)]
        self._page.write("".join(f"{INDENT}{row}\n" for row in rows))
        self._drawn = len(rows)

    def outcome(
        self,
        lines: int,
        counts: Mapping[str, int],
        expected: Mapping[str, int],
        seconds: float,
        error: Exception | None,
    ) -> None:
        """Show what was counted, and whether it is right."""
        self._clear()
        if not self._page.live:
            self._page.write("\n")
        for bar in self._bars(counts):
            self._page.write(f"{INDENT}{bar}\n")
        self._page.write("\n")
        self._page.number("lines", lines, f"in {seconds:.1f} s")
        self._page.number("words", sum(counts.values()), f"{len(counts):,} of them different")
        self._page.write("\n")
        if error is not None:
            self._page.verdict(False, terminal.shown(str(error).partition("\n")[0]))
        elif counts == expected:
            self._page.verdict(True, "the stream counts what is in the file, word by word")
        else:
            wrong = sum(counts.get(word) != count for word, count in expected.items())
            self._page.verdict(False, f"{wrong:,} of {len(expected):,} words are counted wrong, or not yet")

    def _bars(self, counts: Mapping[str, int]) -> list[str]:
        top = sorted(counts, key=lambda word: (-counts[word], word))[:TOP]
        length = max(0, min(BAR, terminal.width() - len(INDENT) - WIDEST - LABEL))
        return [
            f"{terminal.shown(word)[:WIDEST]:<{WIDEST}}{counts[word]:>8,}  "
            f"{self._page.bar(counts[word] / counts[top[0]], length)}"
            for word in top
        ]

    def _clear(self) -> None:
        if self._drawn:
            self._page.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


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
