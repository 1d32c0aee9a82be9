"""What more workers bring, and what it costs when a call has to be passed on: `python -m bench.scaling`.

A rendezvous is one recv! and one send!, both answered. Its cost is counted in CPU time of the
node, user and system, of the supervisor and all workers: wall time on a shared machine says
little. Every run starts its own nodes and goes through all cases, so that whatever slows the
machine down for a while does not fall on one case alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

import skywalker
from bench.figures import machine, scaling_plot
from bench.figures.command import Findings, command
from bench.figures.progress import show_progress
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode, Shape, measure
from bench.figures.scaling import Case, Node, Report, Route
from bench.load.plan import Load
from bench.servers.script import MAX_LANES
from skywalker import build
from skywalker.embedding import embedded

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
            with embedded(workers=workers) as node:
                for number, (case, route) in enumerate([*cases, (LATENCY, Route.ANY)]):
                    progress(f"run {run} of {runs}: {workers} workers, {case.mode}, {case.shape}, {route}")
                    in_turn = case.mode == Mode.LOCKSTEP
                    load = Load(
                        *(node.host, node.port, f"scaling-{run}-{number}", *case.shape),
                        value_bytes=VALUE_BYTES, in_turn=in_turn, direct=route == Route.DIRECT, strict=True,
                    )  # fmt: skip
                    sample = measure(load, seconds, node.pid, generators=1 if in_turn else generators)
                    report.add(case, Node(workers, route), sample)
    return report


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


@command(runs=3, seconds=2.0, quick=0.3, json=True, plot=True)
@click.option("--workers", type=_WorkerCounts(), default=(1, 2, 4, 8), help="Worker counts of the nodes.")
@click.option("--shape", "shapes", type=_Shape(), multiple=True, help="Pairs and calls in flight; may be repeated.")
@click.option("--generators", type=click.IntRange(1, 256), default=1, help="Processes that make the calls.")
def main(workers: tuple[int, ...], shapes: tuple[Shape, ...], runs: int, seconds: float, generators: int) -> Findings:
    """Measure how many rendezvous nodes with more and more workers bring about, and what each costs.

    Calls come to any worker, or directly to the one that owns their topic; then one at a time, for how long it takes.

    Nodes are started for it, on free ports, and stopped. A core-second is one of CPU time, user
    and system, of all processes of the node.
    """
    report = bench(workers, shapes or tuple(SHAPES.values()), runs, seconds, generators, show_progress)
    return Findings(report.lines(), report.to_data(), draw=functools.partial(scaling_plot.draw, report))


if __name__ == "__main__":
    main()
