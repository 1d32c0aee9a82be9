"""skywalker beside NATS, Redis, a ZeroMQ broker and an echo, on the same work: `python -m bench.peers`.

A rendezvous is a value that one side sends and another receives, both answered. Every server does it the fastest
way it has, over plain sockets and with frames encoded beforehand; the generator is the same for all. A run measures
each shape on one server after the other, so that what slows the machine down for a while falls on all.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final

import click

from bench import machine, pages, peers_plot
from bench.comparison import LATENCY, SHAPES, Case, Comparison
from bench.errors import BenchError
from bench.load.command import Picture
from bench.measure import measure
from bench.plan import Mode, Plan
from bench.progress import measuring, show_progress
from bench.report import Shape
from bench.servers import SERVERS

VALUE_BYTES: Final = 16

OUTPUT: Final = click.Path(dir_okay=False, path_type=Path)


def compare(
    peers: Sequence[str], shapes: Sequence[Shape], runs: int, seconds: float, progress: Callable[[str], None]
) -> Comparison:
    """Measure every case on every server in every run; `progress` is told in a few words what comes next.

    Raises BenchError, or SkywalkerError if a node does not start.
    """
    settings: dict[str, Any] = {}
    found = Comparison(settings, peers)
    cases = [*(Case(Mode.CLOSED_LOOP, shape) for shape in shapes), LATENCY]
    for run in range(1, runs + 1):
        with contextlib.ExitStack() as stack:
            running = {peer: stack.enter_context(SERVERS[peer].started()) for peer in peers}
            for case in cases:
                for peer, server in running.items():
                    if case.shape.in_flight > SERVERS[peer].max_in_flight:
                        continue
                    progress(f"run {run} of {runs}: {peer}, {case}")
                    name = f"run{run}-{case.mode}-{case.shape.pairs}x{case.shape.in_flight}"
                    plan = Plan(case.mode, server.host, server.port, name, *case.shape, server=peer)
                    try:
                        found.add(case, peer, measure(server.pid, plan, seconds))
                    except BenchError as error:
                        raise BenchError(f"{peer}, {case}: {error}") from error
            settings.update({peer: server.version for peer, server in running.items()})
    settings |= machine.settings(runs, seconds)
    settings["value bytes"] = VALUE_BYTES
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 1000), default=5, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, help="Length of each measurement.")
@click.option(
    "--shape",
    "shapes",
    type=click.Choice(list(SHAPES)),
    multiple=True,
    help="Pairs x calls in flight; may be repeated.  [default: all]",
)
@click.option(
    "--peer",
    "peers",
    type=click.Choice(list(SERVERS)),
    multiple=True,
    help="A server; may be repeated.  [default: all]",
)
@click.option("--quick", is_flag=True, help="One run of 0.3 seconds each: shows that it works, not how fast.")
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="Also write everything as JSON.")
@click.option(
    "--markdown",
    "pages_",
    type=OUTPUT,
    multiple=True,
    metavar="FILE",
    help="Also put the tables into a page, between marks; may be repeated.",
)
@click.option("--plot", "plot_file", type=Picture(), help="Also draw it, to a .png or .svg.")
def main(
    runs: int,
    seconds: float,
    shapes: tuple[str, ...],
    peers: tuple[str, ...],
    quick: bool,
    json_file: IO[str] | None,
    pages_: tuple[Path, ...],
    plot_file: Path | None,
) -> None:
    """Compare what a rendezvous costs skywalker, NATS, Redis, a ZeroMQ broker and an echo, the floor.

    The servers are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user
    and system, of all processes of a server.
    """
    if quick:
        runs, seconds = 1, 0.3
    with measuring():
        for page in pages_:
            pages.split(page, "peers")
        found = compare(
            [name for name in SERVERS if name in (peers or SERVERS)],
            [SHAPES[name] for name in SHAPES if name in (shapes or SHAPES)],
            runs,
            seconds,
            show_progress,
        )
        show_progress("")
        for line in found.lines():
            click.echo(line)
        if json_file is not None:
            json.dump(found.to_data(), json_file, indent=2)
            json_file.write("\n")
        for page in pages_:
            pages.put(page, "peers", found.markdown())
            if pages.has(page, "targets"):
                pages.put(page, "targets", found.markdown_of_targets())
        if plot_file is not None:
            peers_plot.draw(found, plot_file)


if __name__ == "__main__":
    main()
