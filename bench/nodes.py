"""What it costs when a call's topic belongs to another node: `python -m bench.nodes`.

All calls come to one node of a cluster on this machine, which forwards those of other nodes. Its
cost is the CPU time of all nodes together. The nodes have one worker each, so that nothing is
passed on within one. Rates over a real network differ by its round trips; the cost does not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import skywalker
from bench.errors import BenchError
from bench.figures.command import Findings, command, show_progress
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode, Samples, Shape, figure, markdown, measure
from bench.load.plan import Load
from bench.peers import Case
from bench.servers.skywalker import cluster
from skywalker.embedding import Node

NODES: Final = (1, 2, 3)
RATES: Final = tuple(Case(Mode.CLOSED_LOOP, shape) for shape in SHAPES.values())
ONE_AT_A_TIME: Final = Case(Mode.LOCKSTEP, Shape(16, 1))

TOKENS: Final = 1024
"""Tokens of each node, for shares that hardly differ from fair ones."""

SETTLED_WITHIN_S: Final = 10.0


def settle(nodes: Sequence[Node]) -> None:
    """Wait until nodes know each other. Raises BenchError if they don't."""
    until = time.monotonic() + SETTLED_WITHIN_S
    while any(len(_ring_of(node)) < len(nodes) for node in nodes):
        if time.monotonic() > until:
            raise BenchError(f"{len(nodes)} nodes did not find each other within {SETTLED_WITHIN_S:g} s")
        time.sleep(0.05)


def _ring_of(node: Node) -> list[dict[str, object]]:
    with skywalker.connect(node.address, direct=False) as client:
        return client.nodes()


def bench(runs: int, duration_s: float, progress: Callable[[str], None]) -> Samples[Case, int]:
    """Measure every case in every run. Raises BenchError or SkywalkerError."""
    samples: Samples[Case, int] = Samples()
    for run in range(1, runs + 1):
        for count in NODES:
            with cluster(*[{"workers": 1, "tokens": TOKENS}] * count) as nodes:
                settle(nodes)
                home, *_ = nodes
                for case in (*RATES, ONE_AT_A_TIME):
                    progress(f"run {run} of {runs}: {count} nodes, {case.mode}, {case.shape}")
                    in_turn = case == ONE_AT_A_TIME
                    load = Load(
                        *(home.host, home.port, f"nodes-{run}-{case.mode}", *case.shape),
                        value_bytes=VALUE_BYTES, in_turn=in_turn, timed=in_turn, strict=True,
                    )  # fmt: skip
                    samples.add(case, count, measure(load, duration_s, [node.pid for node in nodes]))
    return samples


def table(samples: Samples[Case, int]) -> Iterator[str]:
    """Yield the lines of a Markdown table: rendezvous per core-second of all nodes, and the time of one."""
    rows = []
    for count in NODES:
        rates = [(samples.median(case, count, "rate_per_core") or 0.0) / 1000 for case in RATES]
        times = [figure(samples.median(ONE_AT_A_TIME, count, name), ".0f") for name in ("p50_us", "p99_us")]
        name = "1 node" if count == 1 else f"{count} nodes, {count - 1} of {count} calls forwarded"
        rows.append((name, *(f"{rate:,.0f} k" for rate in rates), f"{' / '.join(times)} us"))
    yield from markdown(("", *(str(case.shape) for case in RATES), "one at a time, p50 / p99"), rows)


@command(runs=3, seconds=2.0, quick=0.3, markdown=["nodes"])
def main(runs: int, seconds: float) -> Findings:
    """Measure what forwarding between nodes costs. Nodes are started for it, on free ports, and stopped."""
    samples = bench(runs, seconds, show_progress)
    settings = f"medians of {runs} runs of {seconds:g} s, nodes of one worker, values of {VALUE_BYTES} bytes"
    lines = [*table(samples), "", f"Rendezvous per core-second of all nodes, {settings}."]
    return Findings(lines, pages={"nodes": lines})


if __name__ == "__main__":
    main()
