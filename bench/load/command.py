"""The options of a load test, and where its results go."""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Literal, NamedTuple

import click

from bench.errors import BenchError
from bench.lanes import MAX_LANES, MIN_VALUE_BYTES
from bench.load import plot
from bench.load.contact import contact
from bench.load.counts import DOUBLED, NOT_RECEIVED, WRONG
from bench.load.outcome import Outcome
from bench.load.plan import MAX_VALUE_BYTES, Load
from bench.load.run import run
from bench.load.summary import Progress, lines
from bench.load.usage import listener
from skywalker import embedding, units
from skywalker.address import Address
from skywalker.errors import SkywalkerError
from skywalker.limits import DEFAULT_ADDRESS, MAX_TIMEOUT_MS

INCORRECT: Final = (WRONG, NOT_RECEIVED, DOUBLED)
"""Errors that no correct node makes, however it is loaded; the exit status is 1 then."""

SPARE_CONNECTIONS: Final = 1000
"""What a node that is started for a test takes beyond those of the pairs: with --direct many are tried."""

Command = Callable[..., None]


class Target(NamedTuple):
    """The node under test."""

    address: Address
    words: str
    pid: int | None  # its first process, where that is known


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


class _Address(click.ParamType[Address]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return value if isinstance(value, Address) else Address.parse(value)
        except SkywalkerError as error:
            self.fail(str(error), param, ctx)


class Picture(click.ParamType[Path]):
    """A file to draw to."""

    name = "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if path.suffix not in plot.FORMATS:
            self.fail(f"{str(value)!r} does not end in {' or '.join(plot.FORMATS)}", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"there is no directory {str(path.parent)!r}", param, ctx)
        return path


TIME: Final = _Time()


def target_options(command: Command) -> Command:
    """Add --connect, --start and --pid; the command gets a function that gives the Target as its first argument."""

    @click.option(
        "--connect",
        type=_Address(),
        default=DEFAULT_ADDRESS,
        envvar="SKYWALKER_NODE",
        show_default=True,
        show_envvar=True,
        help="the node to test",
    )
    @click.option("--start", type=click.IntRange(1, 1024), metavar="N", help="start one with N workers for it instead")
    @click.option("--pid", type=click.IntRange(1), help="the node's first process; else it is looked for by its port")
    @functools.wraps(command)
    def with_target(connect: Address, start: int | None, pid: int | None, **rest: Any) -> None:
        if start and pid:
            raise click.UsageError("--pid is for a node that runs, and --start starts one")
        command(functools.partial(target, connect, start, pid), **rest)

    return with_target


@contextlib.contextmanager
def target(address: Address, start: int | None, pid: int | None, **settings: Any) -> Iterator[Target]:
    """Start a node with `settings` if that was asked for, or look for the one at an address."""
    if start:
        with embedding.embedded(workers=start, **settings) as node:
            words = f"{node.address}, {start} worker{'s' if start > 1 else ''}, started for this test"
            yield Target(Address(node.host, node.port), words, node.pid)
    else:
        yield Target(address, str(address), pid or listener(address.host, address.port))


def load_options(command: Command) -> Command:
    """Add what makes up a load; the command gets them as keyword arguments."""
    options = (
        click.option("--pairs", type=click.IntRange(1, 100_000), default=8, help="pairs of connections"),
        click.option(
            "--in-flight", type=click.IntRange(1, MAX_LANES), default=64, help="calls in flight on each connection"
        ),
        click.option(
            "--rate",
            type=click.FloatRange(0, 1e8, min_open=True),
            metavar="N",
            help="open loop: N rendezvous a second in all. Latency then counts from when a call was due, so that a "
            "stall is not hidden; calls are made late rather than skipped. Without it each call is made again at once",
        ),
        click.option(
            "--size",
            type=click.IntRange(MIN_VALUE_BYTES, MAX_VALUE_BYTES),
            default=16,
            metavar="BYTES",
            help="size of the values",
        ),
        click.option(
            "--topics",
            type=click.IntRange(1),
            metavar="N",
            help="share N topics among all calls in flight. A send! reaches every recv! that waits on its topic, so "
            "with sharing more values are received than sent; the rate still counts each send! once. "
            "By default every call in flight has its own topic",
        ),
        click.option("--prefix", help="what all topics begin with; by default something that no other run has"),
        click.option("--dialect", type=click.Choice(["current", "first"]), default="current", help="how to speak"),
        click.option("--direct", is_flag=True, help="connect to every worker, and send each call to its topic's owner"),
        click.option("--timeout", type=TIME, default="60s", help="how long a send! may wait"),
        click.option("--generators", type=click.IntRange(1, 256), default=1, help="processes that make the calls"),
        click.option("--seconds", type=click.FloatRange(0.1, 86400), default=10.0, metavar="N", help="how long"),
        click.option("--warm-up", type=click.FloatRange(0, 3600), default=1.0, metavar="N", help="seconds before"),
        click.option(
            "--journal",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="record every call there as its client saw it, to be read by `skywalker journal`",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def output_options(command: Command) -> Command:
    """Add the files that results are written to."""
    options = (
        click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="also write all of it as JSON"),
        click.option(
            "--hdr",
            "hdr_file",
            type=click.File("wb"),
            metavar="FILE",
            help="also write the percentiles as HdrHistogram's plotters read them, in microseconds",
        ),
        click.option(
            "--plot",
            "plot_file",
            type=Picture(),
            metavar="FILE",
            help="also draw latency and rate, to a .png or .svg",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def load_test(
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
    """Put a load on a node and show what came of it."""
    progress = Progress()
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
            contact(load).sock.close()
            progress.say(f"connecting {2 * pairs:,} times")
            outcome = run(
                load,
                seconds,
                warm_up_s=warm_up,
                generators=generators,
                server=node.pid,
                progress=progress.show,
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    finally:
        progress.done()
    _show(outcome, node.words, json_file, hdr_file, plot_file)
    if any(outcome.errors.get(code) for code in INCORRECT):
        raise click.exceptions.Exit(1)


def _show(
    outcome: Outcome, node: str, json_file: IO[str] | None, hdr_file: BinaryIO | None, plot_file: Path | None
) -> None:
    for line in lines(outcome, node):
        click.echo(line)
    if json_file is not None:
        json.dump(outcome.to_data(), json_file, indent=2)
        json_file.write("\n")
    if hdr_file is not None:
        if not outcome.latencies.total_count:
            raise BenchError("nothing was answered, so there are no percentiles to write")
        outcome.write_hdr(hdr_file)
    if plot_file is not None:
        plot.draw(outcome, node, plot_file)
