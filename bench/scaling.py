"""What more workers bring, and what it costs when a call has to be passed on: `python -m bench.scaling`.

A rendezvous is one recv! and one send!, both answered. Its cost is counted in CPU time of the
node, user and system, of the supervisor and all workers: wall time on a shared machine says
little. Every run starts its own nodes and goes through all cases, so that whatever slows the
machine down for a while does not fall on one case alone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import click

import skywalker
from bench.errors import BenchError
from bench.lanes import MAX_LANES
from bench.load.command import Picture
from bench.load.outcome import Outcome
from bench.load.plan import Load
from bench.load.run import run
from bench.measure import Sample, measure
from bench.plan import Mode, Plan
from bench.progress import measuring, show_progress
from bench.report import Case, Report, Route, Shape
from bench.scaling_plot import draw
from skywalker.embedding import embedded

SHAPES: Final = (Shape(1, 64), Shape(8, 64), Shape(32, 1), Shape(256, 1))

LATENCY_SHAPE: Final = Shape(16, 1)
"""Pairs that take turns, so that every worker has its share of the connections and of the topics."""

VALUE_BYTES: Final = 16


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What is measured, for how long and how often."""

    workers: Sequence[int] = (1, 2, 4, 8)
    shapes: Sequence[Shape] = SHAPES
    runs: int = 3
    duration_s: float = 2.0
    generators: int = 1

    def cases(self) -> list[Case]:
        """Return the rows of the tables, in their order."""
        return [case for workers in self.workers for case in self._cases_of(workers)]

    def _cases_of(self, workers: int) -> Iterator[Case]:
        # A call on the only worker there is is direct.
        routes = [Route.ANY, Route.DIRECT] if workers > 1 else [Route.ANY]
        for shape in self.shapes:
            yield from (Case(workers, Mode.CLOSED_LOOP, shape, route) for route in routes)
        yield Case(workers, Mode.LOCKSTEP, LATENCY_SHAPE)

    def described(self) -> dict[str, Any]:
        """Return them, and what else the numbers depend on."""
        return {
            "skywalker": skywalker.__version__,
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            "workers": list(self.workers),
            "runs": self.runs,
            "seconds": self.duration_s,
            "generators": self.generators,
            "value bytes": VALUE_BYTES,
        }


def bench(settings: Settings, progress: Callable[[str], None]) -> Report:
    """Measure every case in every run; `progress` is told in a few words what comes next.

    Raises BenchError, or SkywalkerError if a node does not start.
    """
    cases = settings.cases()
    report = Report(settings.described(), cases)
    for run_number in range(1, settings.runs + 1):
        for workers in settings.workers:
            with embedded(workers=workers) as node:
                for number, case in enumerate(case for case in cases if case.workers == workers):
                    what = f"{workers} workers, {case.mode}, {case.shape}, {case.route}"
                    progress(f"run {run_number} of {settings.runs}: {what}")
                    name = f"scaling-{run_number}-{number}"
                    if case.mode == Mode.LOCKSTEP:
                        plan = Plan(case.mode, node.host, node.port, name, *case.shape, value_bytes=VALUE_BYTES)
                        report.add(case, measure(node.pid, plan, settings.duration_s))
                    else:
                        load = Load(
                            node.host,
                            node.port,
                            name,
                            *case.shape,
                            value_bytes=VALUE_BYTES,
                            direct=case.route == Route.DIRECT,
                        )
                        outcome = run(load, settings.duration_s, generators=settings.generators, server=node.pid)
                        report.add(case, sample_of(outcome))
    return report


def sample_of(outcome: Outcome) -> Sample:
    """Return what a load test found as one sample. Raises BenchError if anything failed, or the server ended."""
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.errors or outcome.server is None or not outcome.rate:
        what = ", ".join(f"{count} {code}" for code, count in outcome.errors.items()) or "the server ended"
        raise BenchError(f"the load did not go well: {what}")
    return Sample(
        seconds=outcome.seconds,
        rendezvous=outcome.rendezvous,
        sent=outcome.total.sent,
        received=outcome.total.received,
        rate=outcome.rate,
        server_cores=outcome.server.cores,
        generator_cores=outcome.generator_cores,
        p50_us=outcome.percentile_us(50),
        p99_us=outcome.percentile_us(99),
        forwarded=outcome.forwarded,
    )


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


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--workers", type=_WorkerCounts(), default=(1, 2, 4, 8), help="Worker counts of the nodes.")
@click.option("--shape", "shapes", type=_Shape(), multiple=True, help="Pairs and calls in flight; may be repeated.")
@click.option("--runs", type=click.IntRange(1, 1000), default=3, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, help="Length of each measurement.")
@click.option("--generators", type=click.IntRange(1, 256), default=1, help="Processes that make the calls.")
@click.option("--quick", is_flag=True, help="One run of 0.3 seconds each: shows that it works, not how fast.")
@click.option("--plot", "plot_file", type=Picture(), help="Also draw it, to a .png or .svg.")
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="Also write everything as JSON.")
def main(
    workers: tuple[int, ...],
    shapes: tuple[Shape, ...],
    runs: int,
    seconds: float,
    generators: int,
    quick: bool,
    plot_file: Path | None,
    json_file: IO[str] | None,
) -> None:
    """Measure how many rendezvous nodes with more and more workers bring about, and what each costs.

    Calls come to any worker, or directly to the one that owns their topic; then one at a time, for how long it takes.

    Nodes are started for it, on free ports, and stopped. A core-second is one of CPU time, user
    and system, of all processes of the node.
    """
    if quick:
        runs, seconds = 1, 0.3
    settings = Settings(workers, shapes or SHAPES, runs, seconds, generators)
    with measuring():
        report = bench(settings, show_progress)
    for line in report.lines():
        click.echo(line)
    if json_file is not None:
        json.dump(report.to_data(), json_file, indent=2)
        json_file.write("\n")
    if plot_file is not None:
        draw(report, plot_file)


if __name__ == "__main__":
    main()
