"""What a comparison of servers found: medians, ratios and targets, as tables for people and as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from bench.figures.samples import Mode, Samples, Shape, figure, markdown, table

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


class Target(NamedTuple):
    """How many times the rendezvous per core-second of a peer ours should be, in one shape."""

    shape: Shape
    peer: str
    times: float


TARGETS: Final = (
    *(Target(shape, "nats", 1.5) for shape in (Shape(1, 64), Shape(8, 64))),
    *(Target(shape, "nats", 2.0) for shape in (Shape(32, 1), Shape(256, 1))),
    *(Target(shape, "redis", 1.0) for shape in (Shape(32, 1), Shape(256, 1))),
    *(Target(shape, "echo", 0.6) for shape in (Shape(32, 1), Shape(256, 1))),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """A target that was measured: what was to be reached, the figure found, and whether it will do."""

    what: str
    wanted: str
    found: float
    reached: bool


class Comparison(Samples[Case, str]):
    """The samples of every server in every case."""

    def verdicts(self) -> Iterator[Verdict]:
        """Yield every target that can be judged by what was measured."""
        for target in TARGETS:
            case = Case(Mode.CLOSED_LOOP, target.shape)
            ratio = self.ratio(case, OURS, target.peer)
            if ratio is not None:
                what = f"{case}: per core-second, of {target.peer}"
                yield Verdict(what, f"at least {target.times:.1f}", ratio, ratio >= target.times)
        times = self.ratio(LATENCY, OURS, "nats", "p99_us")
        if times:
            yield Verdict(f"{LATENCY}: p99, of nats", "at most 1.0", times, times <= 1)

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        yield from self.settings_lines()
        for case in self.cases():
            yield ""
            yield f"{case}:"
            if case == LATENCY:
                rows = [(peer, *(figure(self.median(case, peer, name)) for name in TIMES)) for peer in self.servers()]
                yield from table(("server", "p50 us", "p99 us"), rows)
            else:
                yield from table(HEADS, [self._row(case, peer) for peer in self.servers()])
        verdicts = list(self.verdicts())
        if verdicts:
            yield ""
            rows = [(each.what, each.wanted, f"{each.found:.2f}", _word(each, "NOT reached")) for each in verdicts]
            yield from table(("target", "wanted", "found", ""), rows)

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

    def markdown_of_targets(self) -> Iterator[str]:
        """Yield a table of what was wanted and found."""
        yield "| target | wanted | found | |"
        yield "|---|---|---:|---|"
        for each in self.verdicts():
            yield f"| {each.what} | {each.wanted} | {each.found:.2f} | {_word(each, '**not reached**')} |"

    def _cell(self, case: Case, peer: str) -> str:
        if case == LATENCY:
            return " / ".join(figure(self.median(case, peer, name)) for name in TIMES) + " us"
        rate = self.median(case, peer, "rate_per_core")
        return CANNOT if rate is None else f"{rate / 1000:,.0f} k"

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, verdicts, and what every run found in each case."""
        return {
            "settings": self.settings,
            "targets": [dataclasses.asdict(verdict) for verdict in self.verdicts()],
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


def _word(verdict: Verdict, else_: str) -> str:
    return "reached" if verdict.reached else else_
