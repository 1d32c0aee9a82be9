"""What more workers bring, and what it costs when a call has to be passed on: `python -m bench.scaling`.

A rendezvous is one recv! and one send!, both answered. Its cost is counted in CPU time of the
node, user and system, of the supervisor and all workers: wall time on a shared machine says
little. Every run starts its own nodes and goes through all cases, so that whatever slows the
machine down for a while does not fall on one case alone.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

import skywalker
from bench.figures import machine
from bench.figures.command import Findings, command, fenced, show_progress
from bench.figures.picture import INK, blank, lay_grid, log_scale, save
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode, Sample, Samples, Shape, figure, measure, table
from bench.figures.targets import Target
from bench.load.plan import Load
from bench.servers.peer import MAX_LANES
from skywalker import build
from skywalker.cli.admin_api import AdminAddress, AdminApi
from skywalker.cli.node import STATE
from skywalker.embedding import Node as Running
from skywalker.embedding import embedded


class Route(enum.StrEnum):
    """Which worker a call is made on."""

    ANY = "any"  # whichever the kernel gave the connection to
    DIRECT = "direct"  # the one that owns its topic


class Case(NamedTuple):
    """What is done."""

    mode: Mode
    shape: Shape


class Node(NamedTuple):
    """On what it is done: a node of so many workers, and how its calls come there."""

    workers: int
    route: Route = Route.ANY


WANTED: Final = {
    Node(2): {Shape(1, 64): 0.55, Shape(8, 64): 0.6, Shape(32, 1): 0.7},
    Node(4): {Shape(1, 64): 0.4, Shape(8, 64): 0.45, Shape(32, 1): 0.5},
    Node(4, Route.DIRECT): {Shape(1, 64): 0.95, Shape(8, 64): 0.9, Shape(32, 1): 0.8},
}
"""The part of what one worker does per core-second that a node is to do, in each shape."""

QUEUES: Final = {Shape(1, 64): 0.9, Shape(8, 64): 0.85, Shape(32, 1): 0.75}
"""The same of any number of workers, where each pair has one topic, and its connections can follow that."""

FORWARDED: Final = 0.05
"""Part of the calls of such pairs that may still be forwarded, once they have had their time."""

FOLLOWED_S: Final = 2.0
"""That time, in seconds."""


class Report(Samples[Case, Node]):
    """The samples of every case on every node."""

    def scaling(self, case: Case, node: Node) -> float | None:
        """Return rendezvous per core-second, as a part of what one worker has of the same shape."""
        return self.ratio(case, node, Node(1))

    def targets(self) -> Iterator[Target]:
        """Yield every target that can be judged by what was measured."""
        for node, parts in WANTED.items():
            for shape, wanted in parts.items():
                if part := self.scaling(Case(Mode.CLOSED_LOOP, shape), node):
                    what = f"{node.workers} workers, {node.route}, {shape}: per core-second, of 1 worker"
                    yield Target(what, part, wanted)

        for case, node in self.samples:
            if case.mode == Mode.QUEUE and node.workers > 1:
                what = f"{node.workers} workers, job queue, {case.shape}"
                part, forwarded = self.scaling(case, node), self.median(case, node, "forwarded")
                if part and case.shape in QUEUES:
                    yield Target(f"{what}: per core-second, of 1 worker", part, QUEUES[case.shape])
                if forwarded is not None:
                    yield Target(f"{what}: forwarded after {FOLLOWED_S:g} s", forwarded, FORWARDED, at_most=True)

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        yield from self.settings_lines()
        heads = ("rendezvous/s", "per core-second", "of 1 worker", "forwarded", "server cores", "generator cores")
        for mode, name in ((Mode.CLOSED_LOOP, "shape"), (Mode.QUEUE, "job queue")):
            rates = [self._rates(case, node) for case, node in self.samples if case.mode == mode]
            if rates:
                yield ""
                yield from table(("workers", name, "worker of a call", *heads), rates)
        latencies = [
            (
                str(node.workers),
                f"{case.shape.pairs} pairs in turn",
                str(node.route),
                *(figure(self.median(case, node, name)) for name in ("p50_us", "p99_us")),
            )
            for case, node in self.samples
            if case.mode == Mode.LOCKSTEP
        ]
        if latencies:
            yield ""
            yield from table(("workers", "one rendezvous at a time", "worker of a call", "p50 us", "p99 us"), latencies)

    def _rates(self, case: Case, node: Node) -> tuple[str, ...]:
        return (
            str(node.workers),
            str(case.shape),
            str(node.route),
            *(figure(self.median(case, node, name)) for name in ("rate", "rate_per_core")),
            figure(self.scaling(case, node), ".2f"),
            figure(self.median(case, node, "forwarded"), ".0%"),
            *(figure(self.median(case, node, name), ".2f") for name in ("server_cores", "generator_cores")),
        )

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and for each case its medians and what every run found."""
        return {"settings": self.settings, "cases": [self._case(*key) for key in self.samples]}

    def _case(self, case: Case, node: Node) -> dict[str, Any]:
        names = ("forwarded",) if case.mode != Mode.LOCKSTEP else ("p50_us", "p99_us")
        return {
            "workers": node.workers,
            "mode": str(case.mode),
            **case.shape._asdict(),
            "route": str(node.route),
            **{name: self.median(case, node, name) for name in ("rate", "rate_per_core", *names)},
            **({"of_one_worker": self.scaling(case, node)} if case.mode != Mode.LOCKSTEP else {}),
            "runs": self.runs(case, node),
        }


COLOURS: Final = ("#2a6fbb", "#c8432b", "#3f8f5b", "#8a5fb0", "#b8860b")


def draw(report: Report, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    figure = blank(9, 4.8)
    from matplotlib.lines import Line2D  # blank() has seen that it is there

    keys = [key for key in report.samples if key[0].mode == Mode.CLOSED_LOOP]
    rates = {key: report.median(*key, "rate_per_core") or 0.0 for key in keys}
    shapes = list(dict.fromkeys(case.shape for case, _ in rates))
    counts = sorted({node.workers for _, node in rates})
    axes = figure.subplots()
    for number, shape in enumerate(shapes):
        colour = COLOURS[number % len(COLOURS)]
        for route, style in ((Route.DIRECT, "-"), (Route.ANY, ":")):
            # One worker has every call directly.
            line = {
                counts.index(node.workers): rate
                for (case, node), rate in rates.items()
                if case.shape == shape and (node.route == route or node.workers == 1)
            }
            axes.plot(
                [*line],
                [*line.values()],
                f"o{style}",
                color=colour,
                linewidth=2,
                markersize=5,
            )
    handles = [Line2D([], [], color=COLOURS[at % len(COLOURS)], linewidth=2) for at in range(len(shapes))]
    handles += [Line2D([], [], color=INK, linewidth=2, linestyle=style) for style in ("-", ":")]
    names = [*(f"{shape} in flight" for shape in shapes), "directly to the owner", "through any worker"]
    axes.legend(handles, names, frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.set_title("rendezvous per core-second of the server", loc="left", fontsize=10.5, color=INK)
    axes.set_xlabel("workers", color=INK)
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    log_scale(axes.yaxis, min(rates.values()) / 1.3, max(rates.values()) * 1.3, "{:,.0f}".format)
    lay_grid(axes, "y")
    save(figure, file)


LATENCY: Final = Case(Mode.LOCKSTEP, Shape(16, 1))
"""Pairs that take turns, so that every worker has its share of the connections and of the topics."""


def bench(
    counts: Sequence[int],
    shapes: Sequence[Shape],
    runs: int,
    seconds: float,
    generators: int,
    progress: Callable[[str], None],
) -> Report:
    """Measure every case in every run; `progress` is told in a few words what comes next.

    Raises BenchError, or SkywalkerError if a node does not start.
    """
    report = Report(
        {
            "skywalker": f"{skywalker.__version__}, {build.described()}",
            "python": machine.python(),
            "machine": machine.kind(),
            "workers": list(counts),
            "runs": runs,
            "seconds": seconds,
            "generators": generators,
            "value bytes": VALUE_BYTES,
        }
    )
    for run in range(1, runs + 1):
        for workers in counts:
            # A call on the only worker there is is direct.
            routes = [Route.ANY, Route.DIRECT] if workers > 1 else [Route.ANY]
            cases = [(Case(Mode.CLOSED_LOOP, shape), route) for shape in shapes for route in routes]
            with embedded(workers=workers, max_moves=0) as node:
                for number, (case, route) in enumerate([*cases, (LATENCY, Route.ANY)]):
                    progress(f"run {run} of {runs}: {workers} workers, {case.mode}, {case.shape}, {route}")
                    in_turn = case.mode == Mode.LOCKSTEP
                    load = Load(
                        *(node.host, node.port, f"scaling-{run}-{number}", *case.shape),
                        value_bytes=VALUE_BYTES, in_turn=in_turn, direct=route == Route.DIRECT, strict=True,
                    )  # fmt: skip
                    sample = measure(load, seconds, node.pid, generators=1 if in_turn else generators)
                    report.add(case, Node(workers, route), sample)
            with embedded(workers=workers, admin=True) as node:
                for shape in shapes:
                    if shape in QUEUES:
                        progress(f"run {run} of {runs}: {workers} workers, {Mode.QUEUE}, {shape}")
                        sample = queue(node, f"scaling-{run}", shape, seconds, generators)
                        report.add(Case(Mode.QUEUE, shape), Node(workers), sample)
    return report


def queue(node: Running, prefix: str, shape: Shape, seconds: float, generators: int) -> Sample:
    """Have pairs meet on a topic of their own each, once their connections had their time to follow it.

    Raises BenchError.
    """
    load = Load(
        *(node.host, node.port, f"{prefix}-{shape.pairs}", *shape),
        value_bytes=VALUE_BYTES, topics=shape.pairs, takes=True, strict=True,
    )  # fmt: skip
    seen: list[dict[str, int]] = []
    api = AdminApi(AdminAddress.parse(node.admin_address))
    sample = measure(
        load,
        max(seconds, 2.0),
        node.pid,
        generators=generators,
        warm_up_s=FOLLOWED_S,
        progress=lambda _: seen.append(api.get(STATE)["routed"]),
    )
    routed = {route: seen[-1][route] - seen[0][route] for route in seen[0]}
    return dataclasses.replace(sample, forwarded=1.0 - routed["here"] / max(1, sum(routed.values())))


class _WorkerCounts(click.ParamType[tuple[int, ...]]):
    name = "N,N..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        counts = [int(part) if part.isdecimal() else 0 for part in str(value).split(",")]
        if not all(1 <= count <= 1024 for count in counts):
            self.fail(f"{value!r} is no list of worker counts such as 1,2,4", param, ctx)
        return tuple(dict.fromkeys(counts))


class _Shape(click.ParamType[Shape]):
    name = "PAIRSxCALLS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Shape:
        if isinstance(value, Shape):
            return value
        pairs, x, calls = str(value).partition("x")
        if not (x and pairs.isdecimal() and calls.isdecimal() and int(pairs) > 0 and 0 < int(calls) <= MAX_LANES):
            self.fail(f"{value!r} is no shape such as 8x64, with 1 to {MAX_LANES} calls in flight", param, ctx)
        return Shape(int(pairs), int(calls))


@command(runs=5, seconds=2.0, quick=0.3, json=True, markdown=["scaling"], plot=True)
@click.option("--workers", type=_WorkerCounts(), default=(1, 2, 4, 8), help="Worker counts of the nodes.")
@click.option("--shape", "shapes", type=_Shape(), multiple=True, help="Pairs and calls in flight; may be repeated.")
@click.option("--generators", type=click.IntRange(1, 256), default=1, help="Processes that make the calls.")
def main(workers: tuple[int, ...], shapes: tuple[Shape, ...], runs: int, seconds: float, generators: int) -> Findings:
    """Measure how many rendezvous nodes with more and more workers bring about, and what each costs.

    Calls come to any worker, or directly to the one that owns their topic; then one at a time, for how long it takes;
    and in pairs that have one topic each, to which their connections move.

    Nodes are started for it, on free ports, and stopped. A core-second is one of CPU time, user
    and system, of all processes of the node.
    """
    report = bench(workers, shapes or tuple(SHAPES.values()), runs, seconds, generators, show_progress)
    lines = [*report.lines()]
    drawn = functools.partial(draw, report)
    return Findings(lines, report.to_data(), {"scaling": fenced(lines)}, drawn, [*report.targets()])


if __name__ == "__main__":
    main()
