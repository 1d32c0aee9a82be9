"""What it costs a node to be watched: `python -m bench.scraping`.

In every run the same loads meet a node without an admin server, one that is watched as in operation, by a scrape each
second and an open console, and one that is scraped a hundred times a second, one after the other in changing order.
Compared are the rendezvous per core-second of the workers when they have all they can do, and how long a hand-off
takes when they have little to do. What the agent uses, which answers, stands beside it, and is part of the rate per
core-second of the whole node.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import click

import skywalker
from bench.errors import BenchError
from bench.figures import machine
from bench.figures.command import Findings, command, fenced, show_progress
from bench.figures.samples import VALUE_BYTES, Samples, Shape, sample_of
from bench.figures.targets import Target
from bench.load.outcome import Outcome
from bench.load.plan import Load
from bench.load.run import run
from skywalker import build
from skywalker.address import Address
from skywalker.embedding import AGENT, WORKER, embedded

FULL: Final = Shape(8, 64)
"""A closed loop: the node has all it can do."""

CALM: Final = Shape(8, 8)
CALM_RATE: Final = 2000.0
"""An open loop, of so many rendezvous a second: the node has time."""

ALONE: Final = "alone"
WATCHED: Final = "watched"
FLOODED: Final = "flooded"
MODES: Final = (ALONE, WATCHED, FLOODED)

WANTED: Final = 0.98
"""The part of its rate that a node is to have that is watched as in operation."""

CONSOLE: Final = ("/api/topics", "/api/connections")
CONSOLE_S: Final = 2.0
"""What an open console asks besides listening, and seconds until it asks again."""


class Found(NamedTuple):
    """What one run found."""

    rate: float  # rendezvous per core-second of the workers under the full load
    node: float  # the same per core-second of the whole node
    agent: float  # cores of the agent meanwhile
    p99_us: float  # under the calm load


def bench(workers: tuple[int, ...], runs: int, seconds: float, progress: Callable[[str], None]) -> Samples[int, str]:
    """Measure all. Raises BenchError, or SkywalkerError if a node does not start."""
    samples: Samples[int, str] = Samples()
    orders = itertools.cycle(itertools.permutations(MODES))
    for number, order in zip(range(runs), orders, strict=False):
        for count, mode in itertools.product(workers, order):
            progress(f"run {number + 1} of {runs}: {count} workers, {mode}")
            settings: dict[str, Any] = {} if mode == ALONE else {"admin": True}
            with embedded(workers=count, **settings) as node, _watching(node.admin_address, mode):
                full = Load(node.host, node.port, "scraping", *FULL, value_bytes=VALUE_BYTES)
                calm = Load(node.host, node.port, "scraping", *CALM, rate=CALM_RATE, value_bytes=VALUE_BYTES)
                busy, quiet = (run(load, seconds, generators=1, server=node.pid) for load in (full, calm))
                sample = sample_of(busy)
                found = Found(
                    rate=sample.rate / _cores(busy, WORKER),
                    node=sample.rate / sample.server_cores,
                    agent=_cores(busy, re.compile(AGENT)),
                    p99_us=sample_of(quiet).p99_us or 0.0,
                )
            samples.add(count, mode, found)
    return samples


def _cores(outcome: Outcome, name: re.Pattern[str]) -> float:
    """Return what the processes of a name used."""
    assert outcome.server is not None, "sample_of() has seen to that"
    return sum(process.cores for process in outcome.server.processes if name.fullmatch(process.name))


@contextlib.contextmanager
def _watching(address: str, mode: str) -> Iterator[None]:
    """Ask the node at that admin address for the length of a `with` block, as its mode has it."""
    if mode == ALONE:
        yield
        return
    over = threading.Event()
    failed: list[str] = []
    at = Address.parse(address)
    _get(at, "/ready")  # what its start costs is another matter
    asked: list[tuple[tuple[str, ...], float]] = [(("/metrics",), 0.01)]
    if mode == WATCHED:
        asked = [(("/metrics",), 1.0), (CONSOLE, CONSOLE_S), (("/api/events",), 0.0)]
    threads = [threading.Thread(target=_ask, args=(at, paths, every, over, failed)) for paths, every in asked]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if failed:
        raise BenchError(f"the admin server did not go on answering: {failed[0]}")


def _get(at: Address, path: str) -> None:
    with contextlib.closing(http.client.HTTPConnection(at.host, at.port, timeout=30)) as connection:
        connection.request("GET", path)
        connection.getresponse().read()


def _ask(at: Address, paths: tuple[str, ...], every: float, over: threading.Event, failed: list[str]) -> None:
    """Ask for the paths again and again, each `every` so many seconds; without that, read on what comes from one.

    It ends with the first that fails.
    """
    due = time.monotonic()
    path = ""
    try:
        with contextlib.closing(http.client.HTTPConnection(at.host, at.port, timeout=30)) as connection:
            while not over.wait(max(0.0, due - time.monotonic())):
                due = max(due + every, time.monotonic() - 1)  # after a pause, a few are made up for
                for path in paths:
                    connection.request("GET", path)
                    response = connection.getresponse()
                    if response.status != 200:
                        raise BenchError(f"it has the status {response.status}")
                    if not (response.read() if every else _follow(response, over)):
                        raise BenchError("it ended")
    except (OSError, http.client.HTTPException, BenchError) as error:
        failed.append(f"{path}: {error}")


def _follow(response: http.client.HTTPResponse, over: threading.Event) -> bool:
    """Read what comes until it is over; return whether it ever was."""
    while not over.is_set():
        if not response.readline():
            return False
    return True


def lines(samples: Samples[int, str], runs: int, seconds: float) -> list[str]:
    """Return the table."""
    measured = f"skywalker {skywalker.__version__}, {build.described()}, {machine.python()}"
    found = [
        f"{measured}: medians of {runs} x {seconds:g} s;",
        f"thousands of rendezvous per core-second of the workers, and of the whole node, under {FULL}, cores of the",
        f"agent meanwhile, and the 99th percentile of hand-offs in ms at {CALM_RATE:g} rendezvous a second;",
        "ratios are of each run's own, of a node without an admin server = 1",
        "",
        f"{'workers':>7}  {'mode':>8}  {'rate':>6}  {'ratio':>6}"
        f"  {'node':>6}  {'ratio':>6}  {'agent':>6}  {'p99 ms':>7}  {'ratio':>6}",
    ]
    for (workers, mode), each in samples.samples.items():
        middle = Found(*map(statistics.median, zip(*each, strict=True)))
        of_rate, of_node, of_p99 = (
            samples.ratio_by_run(workers, mode, ALONE, name) for name in ("rate", "node", "p99_us")
        )
        row = f"{workers:>7}  {mode:>8}  {middle.rate / 1000:>6.1f}  {of_rate:>6.3f}"
        row += f"  {middle.node / 1000:>6.1f}  {of_node:>6.3f}  {middle.agent:>6.3f}"
        row += f"  {middle.p99_us / 1000:>7.2f}  {of_p99:>6.3f}"
        found.append(row)
    return found


def targets(samples: Samples[int, str]) -> list[Target]:
    """Return what was wanted of the workers."""
    name = "a scrape a second and an open console: per core-second of the workers, of without"
    return [
        Target(
            f"{workers} worker{'s' if workers > 1 else ''}, {name}",
            samples.ratio_by_run(workers, WATCHED, ALONE, "rate"),
            WANTED,
        )
        for workers in samples.cases()
    ]


@command(runs=6, seconds=3.0, quick=0.3, json=True, markdown=["scraping"])
@click.option("--workers", type=int, multiple=True, default=(1, 2), help="Workers of the nodes; may be repeated.")
def main(workers: tuple[int, ...], runs: int, seconds: float) -> Findings:
    """Measure what it costs a node to be watched. Nodes are started for it, on free ports, and stopped."""
    samples = bench(workers, runs, seconds, show_progress)
    data = [
        {
            "workers": count,
            "mode": mode,
            "rates": [found.rate for found in each],
            "node_rates": [found.node for found in each],
            "agent_cores": [found.agent for found in each],
            "p99_us": [found.p99_us for found in each],
        }
        for (count, mode), each in samples.samples.items()
    ]
    found = lines(samples, runs, seconds)
    return Findings(found, data, {"scraping": fenced(found)}, targets=targets(samples))


if __name__ == "__main__":
    main()
