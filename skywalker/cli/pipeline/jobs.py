"""`skywalker pipeline ingest`, `report`, `latency`, `topics` and the other jobs on recorded calls: the commands."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from skywalker.cli import exits, terminal
from skywalker.cli.pipeline.options import (
    FORMATS,
    input_option,
    per_core_option,
    ring_option,
    save,
    session,
    spark_options,
)
from skywalker.cli.pipeline.steps import Steps
from skywalker.cli.terminal import aligned
from skywalker.pipeline.jobs.defaults import GROUPS, HOP_COST, MINUTE_S, NODES, OVERLAP_US

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skywalker.pipeline.jobs.inputs import Input


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


Job = Callable[..., "DataFrame"]
C = TypeVar("C", bound=Callable[..., Any])


def _command(job: Job) -> Callable[..., int]:
    """Make a command of a function from an Input and options to a table: it shows the table, and may write it."""

    @input_option
    @click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="also write all of the table there")
    @click.option("--format", type=click.Choice(FORMATS), default="parquet", show_default=True, help="of --output")
    @click.option("--rows", type=click.IntRange(0), default=20, show_default=True, help="how many rows are printed")
    @spark_options
    @functools.wraps(job)
    def run(
        input: Path, output: Path | None, format: str, rows: int, cores: int | None, memory: str, **options: Any
    ) -> int:
        with session(job.__name__, cores, memory, [input]) as spark:
            from skywalker.pipeline.jobs.inputs import read

            found = read(spark, input)
            table = job(found, **options)
            with Steps(spark).step(job.__name__):
                if output is not None:
                    save(table, output, format)
                    table = spark.read.schema(table.schema).format(format).options(header=True).load(str(output))
                # Both while there is a session: one of Spark Connect is asked for columns, too.
                names, shown = table.columns, [[*row] for row in table.limit(rows).collect()] if rows else []
        if rows:
            for at in (at for at, name in enumerate(names) if name in NODES):
                for row in shown:
                    row[at] = row[at] and found.owners.called(row[at])
            terminal.write("".join(f"{line}\n" for line in _lines(names, shown)).encode(errors="replace"))
        return exits.OK

    return run


def _by(*default: str) -> Callable[[C], C]:
    return click.option(
        "--by",
        type=click.Choice([*GROUPS]),
        multiple=True,
        default=default,
        show_default=True,
        help="what calls are told apart by; may be repeated",
    )


_seconds: Final = click.option(
    "--seconds", type=click.IntRange(1, 86_400), default=MINUTE_S, show_default=True, help="length of a 'minute'"
)


@click.command(short_help="Percentiles of how long calls took")
@_by("minute")
@click.option("--exact", is_flag=True, help="exact percentiles, which take more memory, instead of within 1 %")
@_seconds
@_command
def latency(found: Input, by: Sequence[str], exact: bool, seconds: int) -> DataFrame:
    """Percentiles of waits, in µs: of calls that met ("wait"), and of those whose partner was there ("hand-off")."""
    from skywalker.pipeline.jobs.latency import latency

    table = latency(found.calls, found.names, by, exact, seconds)
    return table.orderBy(*table.columns[: table.columns.index("measure") + 1])


@click.command(short_help="Hot topics, and what became of their calls")
@click.option("--most", type=click.IntRange(1), help="only so many of the hottest")
@_command
def topics(found: Input, most: int | None) -> DataFrame:
    """Topics by their number of calls, with their share of all."""
    from skywalker.pipeline.jobs.topics import topics

    return topics(found.calls, found.names, most)


@click.command(short_help="Who has how much of the work")
@ring_option
@_command
def balance(found: Input, ring: Path | None) -> DataFrame:
    """Calls that each node, worker and token of the ring owns, and what came in there, against a fair share."""
    from skywalker.pipeline.jobs.balance import balance

    return balance(found.calls, found.owners if ring is None else found.owners.with_ring(ring))


@click.command(short_help="Calls that came in at the wrong worker")
@_by("worker")
@click.option(
    "--hop-cost", type=click.FloatRange(0), default=HOP_COST, show_default=True, help="CPU time of one, in calls"
)
@_command
def forwarding(found: Input, by: Sequence[str], hop_cost: float) -> DataFrame:
    """Calls that were passed on to the owner of their topic, and what clients that go there at once would save."""
    from skywalker.pipeline.jobs.forwarding import forwarding

    return forwarding(found.calls, by, hop_cost)


@click.command(short_help="Why calls met nobody")
@_by("method")
@_seconds
@_command
def timeouts(found: Input, by: Sequence[str], seconds: int) -> DataFrame:
    """Calls that met nobody, by cause."""
    from skywalker.pipeline.jobs.timeouts import timeouts

    return timeouts(found.calls, by, seconds)


@click.command(short_help="Calls that should have met each other")
@click.option(
    "--overlap",
    type=click.IntRange(1),
    default=OVERLAP_US,
    show_default=True,
    help="µs that both must have waited together",
)
@_command
def unmatched(found: Input, overlap: int) -> DataFrame:
    """A receiver and a sender of one topic that waited at the same time, and both missed: one row for each receiver."""
    from skywalker.pipeline.jobs.unmatched import unmatched

    return unmatched(found.calls, found.names, overlap)


@click.command(short_help="Calls a second, and the cores that they need")
@per_core_option
@_seconds
@_command
def capacity(found: Input, per_core: float, seconds: int) -> DataFrame:
    """Calls a second, by the minute and in its busiest second, and how many cores they need."""
    from skywalker.pipeline.jobs.capacity import capacity

    return capacity(found.calls, per_core, seconds)


def _lines(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a table: columns of numbers to the right, others to the left."""
    numeric = [all(isinstance(row[at], int | float | None) for row in rows) for at in range(len(names))]
    return aligned([names, *([_cell(value) for value in row] for row in rows)], numeric)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 100 else f"{value:.0f}"
    return terminal.shown(str(value))
