"""The options of `skywalker-bench`, and where its results go."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Literal

import click

from bench.errors import BenchError
from bench.figures.command import Picture, show_progress, write_json
from bench.figures.summary import draw, lines, progress_of
from bench.figures.target import Target, target_options
from bench.idle import idle_test
from bench.load.dial import contact
from bench.load.outcome import Outcome
from bench.load.plan import DOUBLED, MAX_VALUE_BYTES, NOT_RECEIVED, WRONG, Load
from bench.load.run import run
from bench.servers.peer import MAX_LANES, MIN_VALUE_BYTES
from skywalker import units
from skywalker.limits import MAX_TIMEOUT_MS

INCORRECT: Final = (WRONG, NOT_RECEIVED, DOUBLED)
"""Errors that no correct node makes, however it is loaded; the exit status is 1 then."""

SPARE_CONNECTIONS: Final = 1000
"""What a node that is started for a test takes beyond those of the pairs: with --direct many are tried."""


class _Time(click.ParamType[float]):
    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value) if isinstance(value, int | float) else units.duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds * 1000 > MAX_TIMEOUT_MS:
            self.fail(f"{value!r} is longer than a day", param, ctx)
        return seconds


TIME: Final = _Time()


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@target_options
@click.option("--pairs", type=click.IntRange(1, 100_000), default=8, help="pairs of connections")
@click.option("--in-flight", type=click.IntRange(1, MAX_LANES), default=64, help="calls in flight on each connection")
@click.option(
    "--rate",
    type=click.FloatRange(0, 1e8, min_open=True),
    metavar="N",
    help="open loop: N rendezvous a second in all. Latency then counts from when a call was due, so that a "
    "stall is not hidden; calls are made late rather than skipped. Without it each call is made again at once",
)
@click.option(
    "--size",
    type=click.IntRange(MIN_VALUE_BYTES, MAX_VALUE_BYTES),
    default=16,
    metavar="BYTES",
    help="size of the values",
)
@click.option(
    "--topics",
    type=click.IntRange(1),
    metavar="N",
    help="share N topics among all calls in flight. A send! reaches every recv! that waits on its topic, so "
    "with sharing more values are received than sent; the rate still counts each send! once. "
    "By default every call in flight has its own topic",
)
@click.option("--prefix", help="what all topics begin with; by default something that no other run has")
@click.option("--dialect", type=click.Choice(["current", "first"]), default="current", help="how to speak")
@click.option("--direct", is_flag=True, help="connect to every worker, and send each call to its topic's owner")
@click.option("--timeout", type=TIME, default="60s", help="how long a send! may wait")
@click.option("--generators", type=click.IntRange(1, 256), default=1, help="processes that make the calls")
@click.option("--seconds", type=click.FloatRange(0.1, 86400), default=10.0, metavar="N", help="how long")
@click.option("--warm-up", type=click.FloatRange(0, 3600), default=1.0, metavar="N", help="seconds before")
@click.option(
    "--journal",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="record every call there as its client saw it, to be read by `skywalker journal`",
)
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="also write all of it as JSON")
@click.option(
    "--hdr",
    "hdr_file",
    type=click.File("wb"),
    metavar="FILE",
    help="also write the percentiles as HdrHistogram's plotters read them, in microseconds",
)
@click.option(
    "--plot",
    "plot_file",
    type=Picture(),
    metavar="FILE",
    help="also draw latency and rate, to a .png or .svg",
)
def bench(
    target: Callable[..., contextlib.AbstractContextManager[Target]],
    *,
    pairs: int,
    in_flight: int,
    rate: float | None,
    size: int,
    topics: int | None,
    prefix: str | None,
    dialect: Literal["current", "first"],
    direct: bool,
    timeout: float,
    generators: int,
    seconds: float,
    warm_up: float,
    journal: Path | None,
    json_file: IO[str] | None,
    hdr_file: BinaryIO | None,
    plot_file: Path | None,
) -> None:
    """Have pairs of connections meet on a node, as fast as they can or at a --rate, and show how it does.

    \b
      skywalker-bench --start 2                     a node with 2 workers, started for this
      skywalker-bench --connect 10.0.0.5:3443       one that runs
      skywalker-bench --rate 5000 --plot load.png   at a steady rate, with a picture
      skywalker-bench idle --connections 10000      what waiting costs

    A connection that is lost is dialled again and a call that fails is made again; both are counted. Ctrl-C
    ends it early, with the figures so far. The exit status is 1 if a reply was wrong or a value was lost.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    try:
        with target(max_connections=2 * pairs + SPARE_CONNECTIONS) as node:
            load = Load(
                host=node.address.host,
                port=node.address.port,
                prefix=prefix or f"bench-{secrets.token_hex(4)}",
                pairs=pairs,
                in_flight=in_flight,
                rate=rate or 0.0,
                value_bytes=size,
                topics=topics or 0,
                dialect=dialect,
                direct=direct,
                timeout_s=timeout,
                journal=str(journal.absolute()) if journal else "",
            )
            contact(load).link.close()
            show_progress(f"connecting {2 * pairs:,} times")
            outcome = run(
                load,
                seconds,
                warm_up_s=warm_up,
                generators=generators,
                server=node.pid or (),
                progress=lambda outcome: show_progress(progress_of(outcome)),
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    finally:
        show_progress("")
    _show(outcome, node.words, json_file, hdr_file, plot_file)
    if any(outcome.errors.get(code) for code in INCORRECT):
        raise click.exceptions.Exit(1)


def _show(
    outcome: Outcome, node: str, json_file: IO[str] | None, hdr_file: BinaryIO | None, plot_file: Path | None
) -> None:
    for line in lines(outcome, node):
        click.echo(line)
    if json_file is not None:
        write_json(outcome.to_data(), json_file)
    if hdr_file is not None:
        if not outcome.latencies.total_count:
            raise BenchError("nothing was answered, so there are no percentiles to write")
        outcome.write_hdr(hdr_file)
    if plot_file is not None:
        draw(outcome, node, plot_file)


bench.add_command(idle_test, "idle")
