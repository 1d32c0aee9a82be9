"""What it costs when a call's topic belongs to another node: `python -m bench.nodes`.

All calls come to one node of a cluster on this machine, which forwards those of other nodes. Its
cost is the CPU time of all nodes together. The nodes have one worker each, so that nothing is
passed on within one. Rates over a real network differ by its round trips; the cost does not.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

import skywalker
from bench import pages
from bench.errors import BenchError
from bench.measure import Sample, measure
from bench.plan import Mode, Plan
from bench.progress import measuring, show_progress
from bench.report import Shape
from skywalker.embedding import Node, start

NODES: Final = (1, 2, 3)
SHAPES: Final = (Shape(1, 64), Shape(8, 64), Shape(32, 1), Shape(256, 1))
ONE_AT_A_TIME: Final = Shape(16, 1)
VALUE_BYTES: Final = 16

TOKENS: Final = 1024
"""Tokens of each node, for shares that hardly differ from fair ones."""

SETTLED_WITHIN_S: Final = 10.0

Samples = dict[tuple[int, Mode, Shape], list[Sample]]


@contextlib.contextmanager
def cluster(count: int) -> Iterator[list[Node]]:
    """Run so many nodes that know each other. Raises SkywalkerError if one does not start, BenchError if they don't."""
    with contextlib.ExitStack() as stack:
        nodes: list[Node] = []
        for _ in range(count):
            # A node has to be told where it can be found before it has a port: so of itself, only the last is told.
            join = nodes[0].address if nodes else "127.0.0.1:1"
            state_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="skywalker-bench-"))
            nodes.append(start(workers=1, join=join, tokens=TOKENS, state_dir=state_dir))
            stack.callback(nodes[-1].stop)
        until = time.monotonic() + SETTLED_WITHIN_S
        while any(len(_ring_of(node)) < count for node in nodes):
            if time.monotonic() > until:
                raise BenchError(f"{count} nodes did not find each other within {SETTLED_WITHIN_S:g} s")
            time.sleep(0.05)
        yield nodes


def _ring_of(node: Node) -> list[dict[str, object]]:
    with skywalker.connect(node.address, direct=False) as client:
        return client.nodes()


def bench(runs: int, duration_s: float, progress: Callable[[str], None]) -> Samples:
    """Measure every case in every run. Raises BenchError or SkywalkerError."""
    cases = [*((Mode.CLOSED_LOOP, shape) for shape in SHAPES), (Mode.LOCKSTEP, ONE_AT_A_TIME)]
    samples: Samples = {(count, mode, shape): [] for count in NODES for mode, shape in cases}
    for run in range(1, runs + 1):
        for count in NODES:
            with cluster(count) as nodes:
                home, *others = nodes
                for mode, shape in cases:
                    progress(f"run {run} of {runs}: {count} nodes, {mode}, {shape}")
                    plan = Plan(mode, home.host, home.port, f"nodes-{run}", *shape, value_bytes=VALUE_BYTES)
                    found = measure(home.pid, plan, duration_s, besides=[other.pid for other in others])
                    samples[count, mode, shape].append(found)
    return samples


def table(samples: Samples) -> Iterator[str]:
    """Yield the lines of a Markdown table: rendezvous per core-second of all nodes, and the time of one."""

    def median(count: int, mode: Mode, shape: Shape, figure: str) -> float:
        found: list[float] = [getattr(sample, figure) for sample in samples[count, mode, shape]]
        return statistics.median(found)

    yield f"| | {' | '.join(map(str, SHAPES))} | one at a time, p50 / p99 |"
    yield f"|---|{'---:|' * (len(SHAPES) + 1)}"
    for count in NODES:
        rates = [median(count, Mode.CLOSED_LOOP, shape, "rate_per_core") / 1000 for shape in SHAPES]
        times = [median(count, Mode.LOCKSTEP, ONE_AT_A_TIME, figure) for figure in ("p50_us", "p99_us")]
        name = "1 node" if count == 1 else f"{count} nodes, {count - 1} of {count} calls forwarded"
        yield f"| {name} | {' | '.join(f'{rate:,.0f} k' for rate in rates)} | {times[0]:.0f} / {times[1]:.0f} us |"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 1000), default=3, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, help="Length of each measurement.")
@click.option("--quick", is_flag=True, help="One run of 0.3 seconds each: shows that it works, not how fast.")
@click.option("--markdown", type=click.Path(path_type=Path), multiple=True, help="Also put the table into a page.")
def main(runs: int, seconds: float, quick: bool, markdown: tuple[Path, ...]) -> None:
    """Measure what forwarding between nodes costs. Nodes are started for it, on free ports, and stopped."""
    if quick:
        runs, seconds = 1, 0.3
    with measuring():
        for page in markdown:
            pages.split(page, "nodes")  # raises for one without a place for the table, before all the work
        samples = bench(runs, seconds, show_progress)
    settings = f"medians of {runs} runs of {seconds:g} s, nodes of one worker, values of {VALUE_BYTES} bytes"
    lines = [*table(samples), "", f"Rendezvous per core-second of all nodes, {settings}."]
    click.echo("\n".join(lines))
    for page in markdown:
        pages.put(page, "nodes", lines)


if __name__ == "__main__":
    main()
