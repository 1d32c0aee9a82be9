"""`skywalker pipeline report`: the command."""

from __future__ import annotations

import time
from pathlib import Path

import click

from skywalker.cli import exits, terminal
from skywalker.cli.pipeline.options import input_option, session, spark_options


@click.command(short_help="All figures, on one page with plots")
@input_option
@click.option(
    "--output", required=True, type=click.Path(path_type=Path), metavar="DIR", help="where the page and all tables go"
)
@click.option(
    "--ring", type=click.Path(path_type=Path), metavar="FILE", help="what 'skywalker ring --json' printed, for balance"
)
@click.option(
    "--per-core",
    type=click.FloatRange(0, min_open=True),
    default=100_000.0,
    show_default=True,
    help="calls a second that one core answers",
)
@click.option("--title", default="skywalker: calls", show_default=True, help="of the page")
@spark_options
def report(
    input: Path, output: Path, ring: Path | None, per_core: float, title: str, cores: int | None, memory: str
) -> int:
    """Make all tables of all jobs, pictures of them, and index.html, which has everything in it.

    A journal is first made into Parquet, in parquet/ of the output, where the next report finds it.
    """
    started = time.monotonic()
    with session("report", cores, memory, [input]) as spark:
        from skywalker.pipeline.jobs.ingest import ingest
        from skywalker.pipeline.jobs.inputs import is_journal, read
        from skywalker.pipeline.jobs.owners import Owners
        from skywalker.pipeline.jobs.progress import Progress
        from skywalker.pipeline.report.making import make
        from skywalker.pipeline.report.tables import PASSES

        owners = None if ring is None else Owners.load(ring)
        status = exits.OK
        if is_journal(input):
            parquet = output / "parquet"
            with Progress(spark).step("segments are made into Parquet"):
                done = ingest(spark, [input], parquet)
            for problem in done.problems:
                terminal.complain(str(problem))
                status = exits.FAILED
            input = parquet
        page = make(read(spark, input), output, title, Progress(spark, PASSES), owners, per_core)
    terminal.write(f"{page}, after {time.monotonic() - started:.0f} s\n".encode())
    return status
