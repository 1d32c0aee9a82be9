"""skywalker beside NATS, Redis, a ZeroMQ broker and an echo, on the same work: `python -m bench.peers`.

A rendezvous is a value that one side sends and another receives, both answered. Every server does it the fastest
way it has, over plain sockets and with frames encoded beforehand; the generator is the same for all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.figures.command import Findings, command, several, show_progress
from bench.figures.picture import GRID, INK, blank, save
from bench.figures.samples import SHAPES, VALUE_BYTES, Mode, Samples, Shape, figure, markdown, measure_in_turn, table
from bench.figures.targets import Target
from bench.load.plan import Load
from bench.servers import SERVERS, Running

if TYPE_CHECKING:
    from matplotlib.axes import Axes


OURS: Final = "skywalker"

LATENCY_SHAPE: Final = Shape(1, 1)
"""What the latency is measured with: one pair, one rendezvous at a time."""

CANNOT: Final = "cannot pipeline"

HEADS: Final = (
    *("server", "rendezvous/s", "per core-second", "skywalker is x times that", "server cores", "generator cores"),
)

TIMES: Final = ("p50_us", "p99_us")


class Case(NamedTuple):
    """What is measured of every server in each run."""

    mode: Mode
    shape: Shape

    def __str__(self) -> str:
        if self.mode == Mode.LOCKSTEP:
            return "one at a time"
        return f"{self.shape.pairs} pair{'s' if self.shape.pairs > 1 else ''}, {self.shape.in_flight} in flight"


LATENCY: Final = Case(Mode.LOCKSTEP, LATENCY_SHAPE)


RATES: Final = {Shape(1, 64): 1_500_000, Shape(8, 64): 2_200_000}
"""How many rendezvous per core-second are wanted of us, in a shape."""

TIMES_A_PEER: Final = {
    "nats": {Shape(1, 64): 2.5, Shape(8, 64): 2.0},
    "redis": {Shape(32, 1): 1.15, Shape(256, 1): 1.15},
    "echo": {Shape(32, 1): 0.9, Shape(256, 1): 0.9},
}
"""How many times those of a peer."""


def latencies(found: Samples[Case, str]) -> Iterator[str]:
    """Yield the table of how long one call takes by itself."""
    rows = [(name, *(figure(found.median(LATENCY, name, each)) for each in TIMES)) for name in found.servers()]
    yield from table(("server", "p50 us", "p99 us"), rows)


class Comparison(Samples[Case, str]):
    """The samples of every server in every case."""

    def targets(self) -> Iterator[Target]:
        """Yield every target that can be judged by what was measured."""
        for shape, wanted in RATES.items():
            case = Case(Mode.CLOSED_LOOP, shape)
            if rate := self.median(case, OURS, "rate_per_core"):
                yield Target(f"{case}: per core-second", rate, wanted, form=",.0f")
        for peer, shapes in TIMES_A_PEER.items():
            for shape, times in shapes.items():
                case = Case(Mode.CLOSED_LOOP, shape)
                if ratio := self.ratio(case, OURS, peer):
                    yield Target(f"{case}: per core-second, of {peer}", ratio, times)
        if ratio := self.ratio(LATENCY, OURS, "redis", "p99_us"):
            yield Target(f"{LATENCY}: p99, of redis", ratio, 1.0, at_most=True)

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        yield from self.settings_lines()
        for case in self.cases():
            yield ""
            yield f"{case}:"
            if case == LATENCY:
                yield from latencies(self)
            else:
                yield from table(HEADS, [self._row(case, peer) for peer in self.servers()])

    def _row(self, case: Case, peer: str) -> tuple[str, ...]:
        return (
            peer if (case, peer) in self.samples else f"{peer} ({CANNOT})",
            *(figure(self.median(case, peer, name)) for name in ("rate", "rate_per_core")),
            figure(self.ratio(case, OURS, peer), ".2f"),
            *(figure(self.median(case, peer, name), ".2f") for name in ("server_cores", "generator_cores")),
        )

    def markdown(self) -> Iterator[str]:
        """Yield the table for a page, and how it was made."""
        cases = self.cases()
        heads = [f"{case}, p50 / p99" if case == LATENCY else str(case) for case in cases]
        peers = self.servers()
        rows = [[self.settings.get(peer, peer), *(self._cell(case, peer) for case in cases)] for peer in peers]
        yield from markdown(["", *heads], rows)
        yield ""
        yield (
            f"Rendezvous per core-second of the server, {self.settings['method']}, "
            f"values of {self.settings['value bytes']} bytes; {self.settings['machine']}."
        )

    def _cell(self, case: Case, peer: str) -> str:
        if case == LATENCY:
            return " / ".join(figure(self.median(case, peer, name)) for name in TIMES) + " us"
        rate = self.median(case, peer, "rate_per_core")
        return CANNOT if rate is None else f"{rate / 1000:,.0f} k"

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and what every run found in each case."""
        return {
            "settings": self.settings,
            "cases": [self._case(case, peer) for case, peer in self.samples],
        }

    def _case(self, case: Case, peer: str) -> dict[str, Any]:
        figures = ("rate", "rate_per_core", "server_cores", "generator_cores")
        return {
            "server": peer,
            "mode": str(case.mode),
            **case.shape._asdict(),
            **{name: self.median(case, peer, name) for name in ((*TIMES, *figures) if case == LATENCY else figures)},
            "ratio": self.ratio(case, OURS, peer),
            "runs": self.runs(case, peer),
        }


COLOURS: Final = {
    "skywalker": "#2a6fbb",
    "nats": "#3f8f5b",
    "redis": "#c8432b",
    "zeromq": "#b8860b",
    "echo": "#b9bfc8",
}


def draw(found: Comparison, file: Path) -> None:
    """Write the picture, PNG or SVG as the file's name says. Raises BenchError without matplotlib, or if it can't."""
    cases = found.cases()
    columns = min(3, len(cases))
    rows = -(-len(cases) // columns)
    figure = blank(3.2 * columns, 2.9 * rows + 0.6)
    from matplotlib.patches import Patch  # blank() has seen that it is there

    panels = figure.subplots(rows, columns, squeeze=False).flatten()
    for unused in panels[len(cases) :]:
        unused.set_axis_off()
    for axes, case in zip(panels, cases, strict=False):
        if case == LATENCY:
            _latencies(axes, found)
        else:
            rates = {peer: found.median(case, peer, "rate_per_core") for peer in found.servers()}
            # The floor is far off where calls are batched, and would make all others look alike.
            shown = max(rate for peer, rate in rates.items() if rate and (peer != "echo" or len(rates) == 1)) * 1.3
            _bars(axes, rates, shown)
            axes.set_title(str(case), fontsize=10.5, color=INK)
    handles = [Patch(color=COLOURS[peer]) for peer in found.servers()]
    if len(panels) > len(cases):
        panels[-1].legend(handles, found.servers(), loc="center", frameon=False, labelcolor=INK, fontsize=10)
    else:
        figure.legend(handles, found.servers(), loc="outside lower center", ncols=5, frameon=False, labelcolor=INK)
    figure.suptitle(
        "rendezvous per core-second of the server (more is better)", x=0.01, ha="left", fontsize=11, color=INK
    )
    save(figure, file)


def _bars(axes: Axes, rates: dict[str, float | None], top: float) -> None:
    for at, (peer, rate) in enumerate(rates.items()):
        height = min(rate or 0.0, top)
        axes.bar(at, height, color=COLOURS[peer], width=0.75)
        words = "cannot\npipeline" if rate is None else _short(rate) + (" ↑" if rate > top else "")
        inside = rate is not None and rate > top
        axes.text(at, height, words, ha="center", va="top" if inside else "bottom", fontsize=8, color=INK)
    _plain(axes, top * 1.08)


def _latencies(axes: Axes, found: Comparison) -> None:
    top = 0.0
    for at, peer in enumerate(found.servers()):
        half, most = (found.median(LATENCY, peer, name) or 0.0 for name in ("p50_us", "p99_us"))
        axes.bar(at, most, color=COLOURS[peer], width=0.75, alpha=0.45)
        axes.bar(at, half, color=COLOURS[peer], width=0.75)
        axes.text(at, most, f"{half:,.0f}\n{most:,.0f}", ha="center", va="bottom", fontsize=8, color=INK)
        top = max(top, most)
    axes.set_title("one at a time: p50, p99 in us\n(less is better)", fontsize=10.5, color=INK)
    _plain(axes, top * 1.25)


def _plain(axes: Axes, top: float) -> None:
    axes.set_ylim(0, top)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)


def _short(rate: float) -> str:
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e3:.0f} k"


def load_of(name: str, server: Running, case: Case) -> Load | None:
    """Return what a case is on a server, None if that cannot do it."""
    if case.shape.in_flight > SERVERS[name].max_in_flight:
        return None
    in_turn = case.mode == Mode.LOCKSTEP
    prefix = f"{case.mode}-{case.shape.pairs}x{case.shape.in_flight}"
    return Load(
        *(server.host, server.port, prefix, *case.shape),
        value_bytes=VALUE_BYTES, in_turn=in_turn, server=name, timed=in_turn, strict=True,
    )  # fmt: skip


@command(runs=5, seconds=2.0, quick=0.3, json=True, markdown=["peers"], plot=True)
@several("--shape", "shapes", SHAPES, "Pairs x calls in flight")
@several("--peer", "peers", SERVERS, "A server")
def main(runs: int, seconds: float, shapes: tuple[str, ...], peers: tuple[str, ...]) -> Findings:
    """Compare what a rendezvous costs skywalker, NATS, Redis, a ZeroMQ broker and an echo, the floor.

    The servers are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user
    and system, of all processes of a server.
    """
    servers = {name: peer.started for name, peer in SERVERS.items() if name in peers}
    cases = [Case(Mode.CLOSED_LOOP, shape) for name, shape in SHAPES.items() if name in shapes]
    found = Comparison(servers=[*servers])
    measure_in_turn(found, servers, [*cases, LATENCY], load_of, runs, seconds, show_progress)
    found.settings["value bytes"] = VALUE_BYTES
    drawn = functools.partial(draw, found)
    return Findings(found.lines(), found.to_data(), {"peers": found.markdown()}, drawn, [*found.targets()])


if __name__ == "__main__":
    main()
