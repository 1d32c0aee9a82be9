"""What it costs a node to keep a journal: `python -m bench.journal`.

In every run the same load meets a node without a journal, one that records every call, and one that records every
16th, one after the other in changing order; compared is the CPU time of the whole node for each rendezvous.
"""

from __future__ import annotations

import itertools
import json
import platform
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

import click

import skywalker
from bench.errors import BenchError
from bench.load.plan import Load
from bench.load.run import run
from bench.progress import measuring, show_progress
from bench.report import Shape
from bench.scaling import VALUE_BYTES, sample_of
from skywalker.embedding import embedded

SHAPES: Final = (Shape(1, 64), Shape(8, 64), Shape(32, 1))
OFF: Final = "off"
SAMPLES: Final = (OFF, "1/1", "1/16")

Rates = dict[tuple[int, Shape, str], list[float]]
"""Rendezvous per core-second, by workers, shape and sample."""


def bench(workers: tuple[int, ...], runs: int, seconds: float, progress: Callable[[str], None]) -> Rates:
    """Measure all. Raises BenchError, or SkywalkerError if a node does not start."""
    rates: Rates = defaultdict(list)
    orders = itertools.cycle(itertools.permutations(SAMPLES))
    for number, order in zip(range(runs), orders, strict=False):
        for count, shape, sample in itertools.product(workers, SHAPES, order):
            progress(f"run {number + 1} of {runs}: {count} workers, {shape}, journal {sample}")
            with tempfile.TemporaryDirectory() as directory:
                settings = {} if sample == OFF else {"journal": directory, "journal_sample": sample}
                with embedded(workers=count, **settings) as node:
                    load = Load(node.host, node.port, "journal", *shape, value_bytes=VALUE_BYTES)
                    found = sample_of(run(load, seconds, generators=1, server=node.pid))
                if sample != OFF and not any(Path(directory).glob("*.calls")):
                    raise BenchError("the node kept no journal")
            rates[count, shape, sample].append(found.rate_per_core)
    return rates


def lines(rates: Rates, runs: int, seconds: float) -> list[str]:
    """Return the table."""
    found = [
        f"skywalker {skywalker.__version__}, Python {platform.python_version()}: medians of {runs} x {seconds:g} s,",
        "thousands of rendezvous per core-second of the node; ratios are of each run's own, without a journal = 1",
        "",
        f"{'workers':>7}  {'pairs':>7}  {'off':>6}  {'all':>6}  {'ratio':>6}  {'1/16':>6}  {'ratio':>6}",
    ]
    for workers, shape in dict.fromkeys((workers, shape) for workers, shape, _ in rates):
        off, *on = (rates[workers, shape, sample] for sample in SAMPLES)
        row = f"{workers:>7}  {shape!s:>7}  {statistics.median(off) / 1000:>6.1f}"
        for each in on:
            ratio = statistics.median(one / base for one, base in zip(each, off, strict=True))
            row += f"  {statistics.median(each) / 1000:>6.1f}  {ratio:>6.3f}"
        found.append(row)
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--workers", type=int, multiple=True, default=(1, 2), help="Workers of the nodes; may be repeated.")
@click.option("--runs", type=click.IntRange(1, 1000), default=5, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, help="Length of each measurement.")
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="Also write everything as JSON.")
def main(workers: tuple[int, ...], runs: int, seconds: float, json_file: IO[str] | None) -> None:
    """Measure what it costs a node to keep a journal. Nodes are started for it, on free ports, and stopped."""
    with measuring():
        rates = bench(workers, runs, seconds, show_progress)
    for line in lines(rates, runs, seconds):
        click.echo(line)
    if json_file is not None:
        data = [
            {"workers": count, "shape": str(shape), "journal": sample, "rates": each}
            for (count, shape, sample), each in rates.items()
        ]
        json.dump(data, json_file, indent=2)


if __name__ == "__main__":
    main()
