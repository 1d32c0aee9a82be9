"""How costs grow with what a worker has: `python -m bench.growth`.

Calls that wait, topics, connections, and nodes of the cluster: of each from one to many, all else as it is. What has
come is there and does nothing, while others meet. With nodes, which are made up, it is a worker's part in a cluster
that is measured: to find out whose a topic is, and to go by another ring.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import itertools
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import psutil

from bench.figures import machine
from bench.figures.command import Findings, command, several, show_progress
from bench.figures.picture import GRID, INK, blank, save
from bench.figures.samples import VALUE_BYTES, Shape, figure, markdown, measure, table
from bench.load import crowd
from bench.load.plan import Load
from bench.servers.usage import memory
from skywalker import build
from skywalker.address import Address
from skywalker.embedding import embedded
from skywalker.limits import MIB
from skywalker.members import Member, Place, Snapshot
from skywalker.ring import TOKENS_PER_NODE
from skywalker.wire import values

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ON: Final = 100
"""Connections that calls wait on, where these are what there are more and more of."""

WORKERS: Final = 64
"""Of each node that is made up."""

KEPT_FILES: Final = 1000
"""Of those that a process may have open, what is left for all that is no connection."""

SHARED: Final = 100
"""Topics of the calls that wait, where there are more and more of these."""

SHAPE: Final = Shape(8, 64)
"""Who meets meanwhile."""

LOOKED_UP: Final = 10_000
"""Topics whose owner is looked for."""


class Growing(NamedTuple):
    """What there is more and more of, and what the figures are."""

    sizes: tuple[int, ...]
    cost: str
    time: str


NODES: Final = "nodes"

GROWING: Final = {
    "waiting calls": Growing((1, 100, 10_000, 1_000_000), "ns of a rendezvous", "us of one by itself"),
    "topics": Growing((1, 100, 10_000, 1_000_000), "ns of a rendezvous", "us of one by itself"),
    "connections": Growing((1, 100, 10_000, 50_000), "ns of a rendezvous", "us of one by itself"),
    NODES: Growing((1, 10, 100, 1000), "ns to find an owner", "us to go by a new ring"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """What was found with so many: CPU time of all processes, memory in all, and what one takes."""

    size: int
    cost_ns: float
    bytes: int
    time_us: float


class Growth:
    """What was found, by what there is more and more of; each point is the medians of all runs."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self._found: dict[tuple[str, int], list[Point]] = {}

    def add(self, what: str, point: Point) -> None:
        """Take in what one run found."""
        self._found.setdefault((what, point.size), []).append(point)

    def points(self, what: str) -> list[Point]:
        """Return the points of one, from few to many."""
        return [
            Point(
                size,
                statistics.median(each.cost_ns for each in found),
                int(statistics.median(each.bytes for each in found)),
                statistics.median(each.time_us for each in found),
            )
            for (name, size), found in sorted(self._found.items(), key=lambda item: item[0][1])
            if name == what
        ]

    def names(self) -> list[str]:
        """Return of what there was more and more."""
        return list(dict.fromkeys(name for name, _ in self._found))

    def rows(self, what: str) -> Iterator[tuple[str, ...]]:
        """Yield the rows of its table."""
        points = self.points(what)
        for before, point in zip([points[0], *points], points, strict=False):
            more = point.size - before.size
            each = (point.bytes - before.bytes) / more if more else None
            yield (
                f"{point.size:,}",
                figure(point.cost_ns),
                figure(point.cost_ns / points[0].cost_ns, ".2f"),
                figure(point.time_us),
                figure(point.bytes / MIB, ",.1f"),
                figure(each),
            )

    def heads(self, what: str) -> tuple[str, ...]:
        """Return the heads of its table."""
        growing = GROWING[what]
        return (what, growing.cost, "of the first", growing.time, "MiB", "bytes of each")

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        width = max(map(len, self.settings))
        yield from (f"{name:{width}}  {value}" for name, value in self.settings.items())
        for what in self.names():
            yield ""
            yield from table(self.heads(what), [*self.rows(what)])

    def markdown(self) -> Iterator[str]:
        """Yield the tables for a page, and how they were made."""
        for what in self.names():
            yield from markdown(self.heads(what), [*self.rows(what)], words=0)
            yield ""
        yield f"{self.settings['method']}, {SHAPE}; {self.settings['machine']}."

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and what every run found."""
        runs = [{"of": what} | dataclasses.asdict(each) for (what, _), found in self._found.items() for each in found]
        return {"settings": self.settings, "points": runs}


def among(what: str, size: int, seconds: float, progress: Callable[[str], None]) -> Point:
    """Have so many on a node of one worker, and measure what others cost it meanwhile. Raises BenchError.

    There are no more connections than this machine lets a process have.
    """
    if what == "connections":
        size = min(size, crowd.files_allowed() - KEPT_FILES)
    connections = size if what == "connections" else min(size, ON)
    calls = 0 if what == "connections" else -(-size // connections)
    topics = SHARED if what == "waiting calls" else None
    limits = crowd.settings(connections + 2 * SHAPE.pairs, calls)
    with embedded(workers=1, **limits) as node:
        load = Load(node.host, node.port, patience_s=crowd.PATIENCE_S)
        with crowd.Crowd(load, progress) as there:
            there.connect(connections)
            there.call(calls, topics)
            _, taken = memory(node.pid)
            sample = measure(_load(load, SHAPE, in_turn=False), seconds, node.pid)
            alone = measure(_load(load, Shape(1, 1), in_turn=True), seconds, node.pid)
    return Point(size, 1e9 / sample.rate_per_core, taken, alone.p50_us or 0.0)


def _load(load: Load, shape: Shape, *, in_turn: bool) -> Load:
    return dataclasses.replace(
        load, prefix=f"growth-{shape.pairs}", pairs=shape.pairs, in_flight=shape.in_flight, value_bytes=VALUE_BYTES,
        in_turn=in_turn, timed=in_turn, strict=True,
    )  # fmt: skip


def snapshot(nodes: int) -> Snapshot:
    """Return a cluster of so many nodes that are made up."""
    luck = random.Random(nodes)
    tokens = (tuple(sorted(luck.getrandbits(64) - 2**63 for _ in range(TOKENS_PER_NODE))) for _ in itertools.count())
    return Snapshot(
        Member(f"node-{number:04}", f"node-{number}", Address("127.0.0.1", 1 + number), WORKERS, False, next(tokens))
        for number in range(nodes)
    )


def in_a_cluster(nodes: int) -> Point:
    """Measure a worker's part in a cluster of so many nodes, in this process."""
    from workers.calls.owner import Owner
    from workers.calls.owners import Owners
    from workers.engine.loop import Turn
    from workers.engine.machine import Machine
    from workers.ipc import snapshots
    from workers.stats.counters import Counters

    file = snapshots.write(snapshot(nodes))
    here = Place("node-0000", 0)
    process = psutil.Process()
    before = process.memory_info().rss
    counters = Counters(None, time.monotonic, random.random)
    turn = Turn(Machine(), counters)
    mine = Owner(turn.core, here, is_here=True)
    owners = Owners(turn, mine)
    began = time.process_time()
    with file:
        cluster = snapshots.content(file)
    places = (Place(member.id, worker) for member in cluster for worker in range(member.workers))
    owners.follow(cluster.ring, dict.fromkeys(places) | {here: mine})  # the others are made when they are asked for
    took = time.process_time() - began
    grown = process.memory_info().rss - before
    topics = [values.pack(f"topic {number}") for number in range(LOOKED_UP)]
    began = time.process_time()
    for topic in topics:
        turn.core.owner(topic)
    found = time.process_time() - began
    return Point(nodes, 1e9 * found / LOOKED_UP, grown, 1e6 * took)


def _say_more(progress: Callable[[str], None], words: str, more: str) -> None:
    progress(f"{words}: {more}")


def measure_all(kinds: Sequence[str], most: int, runs: int, seconds: float, progress: Callable[[str], None]) -> Growth:
    """Measure each kind with all its sizes up to `most`, in every run. Raises BenchError or SkywalkerError."""
    found = Growth()
    for run in range(1, runs + 1):
        for what in kinds:
            for size in GROWING[what].sizes:
                if size > most:
                    continue
                words = f"run {run} of {runs}: {size:,} {what}"
                progress(words)
                if what == NODES:
                    context = multiprocessing.get_context("spawn")  # so that its memory is its own
                    with concurrent.futures.ProcessPoolExecutor(1, context) as processes:
                        found.add(what, processes.submit(in_a_cluster, size).result())
                else:
                    found.add(what, among(what, size, seconds, functools.partial(_say_more, progress, words)))
    found.settings |= machine.settings(runs, seconds) | {"build": build.described()}
    return found


def draw(found: Growth, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    names = found.names()
    picture = blank(3.0 * len(names), 7.0)
    grid = picture.subplots(3, len(names), squeeze=False)
    for column, what in enumerate(names):
        points = found.points(what)
        growing = GROWING[what]
        titles = (growing.cost, "MiB in all", growing.time)
        series = ([p.cost_ns for p in points], [p.bytes / MIB for p in points], [p.time_us for p in points])
        for row, (title, ys) in enumerate(zip(titles, series, strict=True)):
            _panel(grid[row][column], [point.size for point in points], ys, title)
        grid[-1][column].set_xlabel(what, color=INK, fontsize=10)
    save(picture, file)


def _panel(axes: Axes, sizes: Sequence[int], ys: Sequence[float], title: str) -> None:
    axes.plot(sizes, ys, color="#2a6fbb", marker="o", markersize=4, linewidth=1.5)
    axes.set_xscale("log")
    axes.set_ylim(0, max(ys) * 1.25)
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.grid(True, axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


@command(runs=3, seconds=0.5, quick=0.2, json=True, markdown=["growth"], plot=True)
@several("--of", "kinds", GROWING, "Of what there is more and more")
@click.option("--most", type=click.IntRange(1), default=1_000_000, help="Leave out what is more than that.")
def main(runs: int, seconds: float, kinds: tuple[str, ...], most: int) -> Findings:
    """Show what a call costs, and how much memory is taken, among more and more calls, topics, connections and nodes.

    A node of one worker is started for each size, on a free port of loopback, and stopped; nodes are made up. Costs are
    CPU time, user and system, of all its processes.
    """
    found = measure_all(kinds, most, runs, seconds, show_progress)
    drawn = functools.partial(draw, found)
    return Findings(found.lines(), found.to_data(), {"growth": found.markdown()}, drawn)


if __name__ == "__main__":
    main()
