"""`skywalker pipeline ingest`: the command."""

from __future__ import annotations

import time
from pathlib import Path

import click

from skywalker.cli import exits, terminal
from skywalker.cli.pipeline.options import session, spark_options
from skywalker.cli.pipeline.steps import Steps


@click.command(short_help="Make Parquet of a journal, each segment once")
@click.option(
    "--input",
    "inputs",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="a journal, or files of it; may be repeated",
)
@click.option(
    "--output", required=True, type=click.Path(path_type=Path), metavar="DIR", help="where calls/ and names/ go"
)
@spark_options
def ingest(inputs: tuple[Path, ...], output: Path, cores: int | None, memory: str) -> int:
    """Make Parquet of a journal. What is there already is not taken again, so it may run as often as one likes.

    A segment that is still written is taken as far as it is, and replaced by more of itself the next time. A file that
    cannot be read is named, and left out; the exit status is 1 then.
    """
    with session("ingest", cores, memory, inputs) as spark:
        from skywalker.pipeline.jobs.ingest import ingest as run

        started = time.monotonic()
        with Steps(spark).step("segments are made into Parquet"):
            done = run(spark, inputs, output)
        seconds = time.monotonic() - started
    for problem in done.problems:
        terminal.complain(str(problem))
    words = f"{done.segments:,} segments, {done.records:,} records in {seconds:.1f} s; {done.known:,} were there\n"
    terminal.write(words.encode())
    return exits.FAILED if done.problems else exits.OK
