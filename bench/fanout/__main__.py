"""skywalker's pub/sub beside Redis and NATS, to 1 to 1,000 subscribers: `python -m bench.fanout`.

Publishers keep so many messages in flight, as bench.fanout.loop says, and every delivery to every subscriber is
counted. A server's cost is the CPU time of all its processes from before the first publish to after the last
delivery. A run measures each case on one server after the other, so that what slows the machine down for a while
falls on all.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

import click

from bench import machine, pages
from bench.errors import BenchError
from bench.fanout.dialects import DIALECTS
from bench.fanout.generator import Generator
from bench.fanout.plan import Load, Plan
from bench.fanout.report import Case, Report
from bench.progress import measuring, show_progress

LOADS: Final = {
    "1x1": Load(1, 1),
    "1x64": Load(1, 64),
    "8x1": Load(8, 1),
    "8x64": Load(8, 64),
    "8x64-topics": Load(8, 64, topics=8),
    "1x64-1KiB": Load(1, 64, payload_bytes=1024),
}

SUBSCRIBERS: Final = (1, 10, 100, 1000)

PAGE: Final = "fanout"


def compare(
    servers: Sequence[str],
    loads: Sequence[Load],
    subscribers: Sequence[int],
    runs: int,
    seconds: float,
    progress: Callable[[str], None],
) -> Report:
    """Measure every case on every server in every run; `progress` is told in a few words what comes next.

    A load whose topics are more than the subscribers is left out. Raises BenchError, or SkywalkerError if a node
    does not start.
    """
    settings: dict[str, Any] = {}
    report = Report(settings, servers)
    cases = [Case(load, count) for load in loads for count in subscribers if count >= load.topics]
    for run in range(1, runs + 1):
        with contextlib.ExitStack() as stack:
            running = {name: stack.enter_context(DIALECTS[name].started()) for name in servers}
            generator = stack.enter_context(Generator.started())
            for case in cases:
                for name, server in running.items():
                    progress(f"run {run} of {runs}: {name}, {case}")
                    plan = Plan(name, server.host, server.port, server.pid, *case, seconds)
                    try:
                        report.add(case, name, generator.measure(plan))
                    except BenchError as error:
                        raise BenchError(f"{name}, {case}: {error}") from error
            settings.update({name: server.version + DIALECTS[name].note for name, server in running.items()})
    settings |= machine.settings(runs, seconds)
    return report


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 1000), default=3, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=0.4, help="Length of each measurement.")
@click.option(
    "--load",
    "loads",
    type=click.Choice(list(LOADS)),
    multiple=True,
    help="Publishers x messages in flight of each; may be repeated.  [default: all]",
)
@click.option(
    "--subscribers",
    type=click.IntRange(1, 10_000),
    multiple=True,
    default=SUBSCRIBERS,
    help="How many; may be repeated.",
)
@click.option(
    "--server",
    "servers",
    type=click.Choice(list(DIALECTS)),
    multiple=True,
    help="A server; may be repeated.  [default: all]",
)
@click.option("--quick", is_flag=True, help="One run of 0.1 seconds each: shows that it works, not how fast.")
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="Also write everything as JSON.")
@click.option(
    "--markdown",
    "pages_",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Also put the tables into a page, between marks; may be repeated.",
)
def main(
    runs: int,
    seconds: float,
    loads: tuple[str, ...],
    subscribers: tuple[int, ...],
    servers: tuple[str, ...],
    quick: bool,
    json_file: IO[str] | None,
    pages_: tuple[Path, ...],
) -> None:
    """Compare what a delivery costs skywalker, with one worker and with two, Redis and NATS.

    The servers are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user
    and system, of all processes of a server.
    """
    if quick:
        runs, seconds = 1, 0.1
    with measuring():
        for page in pages_:
            pages.split(page, PAGE)  # raises for one without a place for the tables, before all the work
        report = compare(
            [name for name in DIALECTS if name in (servers or DIALECTS)],
            [load for name, load in LOADS.items() if name in (loads or LOADS)],
            subscribers,
            runs,
            seconds,
            show_progress,
        )
        show_progress("")
        for line in report.lines():
            click.echo(line)
        if json_file is not None:
            json.dump(report.to_data(), json_file, indent=2)
            json_file.write("\n")
        for page in pages_:
            pages.put(page, PAGE, report.markdown())


if __name__ == "__main__":
    main()
