"""The command: traffic, its journal and the report of it; then words counted by Spark between two topics."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skywalker.cli import exits, terminal
from skywalker.cli.demo.command import ctrl_c_waits, text
from skywalker.cli.demo.screen import BOLD, INDENT, Page, counted
from skywalker.cli.pipeline.steps import Steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skywalker.embedding import Node


@click.command(short_help="Watch Spark study traffic, and take part in it")
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option("--seconds", type=click.FloatRange(0.5, 600), default=6.0, metavar="N", help="how long there is traffic")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="where the report goes  [default: a new directory]",
)
def demo_pipeline(file: Path | None, seconds: float, output: Path | None) -> int:
    """Start a node that keeps a journal, call it on hot and on rare topics for 6 seconds, and make the report.

    Then Spark counts the words of FILE as a stream: its lines come in on one topic, and the counts go out on another.
    What it counted is compared with what is in the file; the exit status is 1 if that is not the same. The report
    stays, nothing else does. Needs pyspark, which skywalker's extra `spark` brings, and Java 17 or newer.
    """
    file = text(file)
    output = output or Path(tempfile.mkdtemp(prefix="skywalker-report-"))
    page = Page()
    page.title("skywalker demo-pipeline")
    with _node(page) as (node, journal):
        _traffic(page, node, seconds)
        with _spark(page) as spark:
            shown = _report(page, spark, journal, output)
            from skywalker.cli.demo_pipeline.word_count import word_count

            page.write(f"\n{INDENT}{terminal.painted('words, counted as they stream by', BOLD)}\n\n")
            good = word_count(node.address, file, spark=spark, page=page)
    page.row("report", str(shown))
    page.write("\n")
    return exits.OK if good else exits.FAILED


@contextlib.contextmanager
def _node(page: Page) -> Iterator[tuple[Node, Path]]:
    from skywalker.embedding import start

    with contextlib.ExitStack() as stack:
        with ctrl_c_waits():
            journal = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skywalker-demo-")))
            node = start(port=0, workers=os.cpu_count() or 1, journal=str(journal))
            stack.callback(node.stop)
        page.row("node", f"{node.address}, {counted(len(node.worker_pids()), 'worker')}, with a journal")
        try:
            yield node, journal
        finally:
            with ctrl_c_waits():
                stack.close()


def _traffic(page: Page, node: Node, seconds: float) -> None:
    from skywalker.cli.demo_pipeline.traffic import TOPICS, drive

    page.row("traffic", f"{TOPICS} topics, the first of them hot, for {seconds:g} s")
    made = drive(node.address, seconds)
    page.write("\n")
    page.number("calls", made.calls, f"{made.calls / seconds:,.0f} a second")
    page.number("met nobody", made.timeouts, "in their time")
    page.write("\n")


@contextlib.contextmanager
def _spark(page: Page) -> Iterator[SparkSession]:
    from skywalker.pipeline import register
    from skywalker.pipeline.session import local

    began = time.monotonic()
    with Steps().step("Spark starts"):
        spark = local("skywalker demo-pipeline")
        register(spark)
    try:
        page.row("Spark", f"{spark.version}, there after {time.monotonic() - began:.1f} s")
        yield spark
    finally:
        spark.stop()


def _report(page: Page, spark: SparkSession, journal: Path, output: Path) -> Path:
    from skywalker.pipeline.jobs.ingest import ingest
    from skywalker.pipeline.jobs.inputs import read
    from skywalker.pipeline.report.page import make

    began = time.monotonic()
    steps = Steps(spark)
    parquet = output / "parquet"
    with steps.step("segments are made into Parquet"):
        done = ingest(spark, [journal], parquet)
    page.row("ingest", f"{done.records:,} records from {counted(done.segments, 'segment')}")
    shown = make(read(spark, parquet), output, "skywalker demo-pipeline", steps.step)
    page.row("report", f"{shown}, after {time.monotonic() - began:.1f} s")
    return shown
