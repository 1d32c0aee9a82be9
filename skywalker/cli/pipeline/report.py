"""`skywalker pipeline report`: the command."""

from __future__ import annotations

import time
from pathlib import Path

import click

from skywalker.cli import exits, terminal
from skywalker.cli.pipeline.options import input_option, per_core_option, ring_option, session, spark_options
from skywalker.cli.pipeline.steps import Steps


@click.command(short_help="All figures, on one page with plots")
@input_option
@click.option(
    "--output", required=True, type=click.Path(path_type=Path), metavar="DIR", help="where the page and all tables go"
)
@ring_option
@per_core_option
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
        from skywalker.pipeline.report.page import make

        steps = Steps(spark)
        status = exits.OK
        if is_journal(input):
            parquet = output / "parquet"
            with steps.step("segments are made into Parquet"):
                done = ingest(spark, [input], parquet)
            for problem in done.problems:
                terminal.complain(str(problem))
                status = exits.FAILED
            input = parquet
        found = read(spark, input)
        if ring is not None:
            found = found._replace(owners=found.owners.with_ring(ring))
        page = make(found, output, title, steps.step, per_core)
    terminal.write(f"{page}, after {time.monotonic() - started:.0f} s\n".encode())
    return status
