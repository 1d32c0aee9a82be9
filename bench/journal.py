"""What it costs a node to keep a journal: `python -m bench.journal`.

In every run the same load meets a node without a journal, one that records every call, and one that records every
16th, one after the other in changing order; compared is the CPU time of the whole node for each rendezvous.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

import skywalker
from bench.errors import BenchError
from bench.figures import machine
from bench.figures.command import Findings, command, fenced, show_progress
from bench.figures.samples import VALUE_BYTES, Samples, Shape, measure
from bench.figures.targets import Target
from bench.load.plan import Load
from skywalker import build
from skywalker.embedding import embedded

SHAPES: Final = (Shape(1, 64), Shape(8, 64), Shape(32, 1))
OFF: Final = "off"
ALL: Final = "1/1"
SAMPLES: Final = (OFF, ALL, "1/16")

WANTED: Final = 0.95
"""The part of the rate without a journal that is wanted with every call in it, where 64 are in flight."""

Rates = Samples[tuple[int, Shape], str]
"""By workers and shape, and by what the journal has."""


def bench(workers: tuple[int, ...], runs: int, seconds: float, progress: Callable[[str], None]) -> Rates:
    """Measure all. Raises BenchError, or SkywalkerError if a node does not start."""
    rates: Rates = Samples()
    orders = itertools.cycle(itertools.permutations(SAMPLES))
    for number, order in zip(range(runs), orders, strict=False):
        for count, shape, sample in itertools.product(workers, SHAPES, order):
            progress(f"run {number + 1} of {runs}: {count} workers, {shape}, journal {sample}")
            with tempfile.TemporaryDirectory() as directory:
                settings = {} if sample == OFF else {"journal": directory, "journal_sample": sample}
                with embedded(workers=count, **settings) as node:
                    load = Load(node.host, node.port, "journal", *shape, value_bytes=VALUE_BYTES, timed=False)
                    rates.add((count, shape), sample, measure(load, seconds, node.pid))
                if sample != OFF and not any(Path(directory).glob("*.calls")):
                    raise BenchError("the node kept no journal")
    return rates


def lines(rates: Rates, runs: int, seconds: float) -> list[str]:
    """Return the table."""
    measured = f"skywalker {skywalker.__version__}, {build.described()}, {machine.python()}"
    found = [
        f"{measured}: medians of {runs} x {seconds:g} s,",
        "thousands of rendezvous per core-second of the node; ratios are of each run's own, without a journal = 1",
        "",
        f"{'workers':>7}  {'pairs':>7}  {'off':>6}  {'all':>6}  {'ratio':>6}  {'1/16':>6}  {'ratio':>6}",
    ]
    for case in rates.cases():
        workers, shape = case
        row = f"{workers:>7}  {shape!s:>7}"
        for sample in SAMPLES:
            row += f"  {(rates.median(case, sample, 'rate_per_core') or 0.0) / 1000:>6.1f}"
            if sample != OFF:
                row += f"  {rates.ratio_by_run(case, sample, OFF):>6.3f}"
        found.append(row)
    return found


def targets(rates: Rates) -> list[Target]:
    """Return what was wanted of one worker."""
    shapes = [shape for workers, shape in rates.cases() if workers == 1 and shape.in_flight > 1]
    name = "every call in the journal: per core-second, of without"
    return [Target(f"{shape}, {name}", rates.ratio_by_run((1, shape), ALL, OFF), WANTED) for shape in shapes]


@command(runs=5, seconds=2.0, quick=0.3, json=True, markdown=["journal"])
@click.option("--workers", type=int, multiple=True, default=(1, 2), help="Workers of the nodes; may be repeated.")
def main(workers: tuple[int, ...], runs: int, seconds: float) -> Findings:
    """Measure what it costs a node to keep a journal. Nodes are started for it, on free ports, and stopped."""
    rates = bench(workers, runs, seconds, show_progress)
    data = [
        {"workers": count, "shape": str(shape), "journal": sample, "rates": [each.rate_per_core for each in found]}
        for ((count, shape), sample), found in rates.samples.items()
    ]
    found = lines(rates, runs, seconds)
    return Findings(found, data, {"journal": fenced(found)}, targets=targets(rates))


if __name__ == "__main__":
    main()
