"""What a comparison of servers found: medians, ratios and targets, as tables for people and as plain data."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from bench.measure import Sample
from bench.plan import Mode
from bench.report import Shape, table

OURS: Final = "skywalker"

SHAPES: Final = {
    f"{shape.pairs}x{shape.in_flight}": shape for shape in (Shape(1, 64), Shape(8, 64), Shape(32, 1), Shape(256, 1))
}

LATENCY_SHAPE: Final = Shape(1, 1)
"""What the latency is measured with: one pair, one rendezvous at a time."""

CANNOT: Final = "cannot pipeline"


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


class Comparison:
    """The samples of every server in every case."""

    def __init__(self, settings: dict[str, Any], peers: Iterable[str]) -> None:
        self.settings = settings
        self.peers = list(peers)
        self._samples: dict[tuple[Case, str], list[Sample]] = {}

    def add(self, case: Case, peer: str, sample: Sample) -> None:
        """Take in what one run found."""
        self._samples.setdefault((case, peer), []).append(sample)

    def cases(self) -> list[Case]:
        """Return the cases that were measured, in their order."""
        return list(dict.fromkeys(case for case, _ in self._samples))

    def median(self, case: Case, peer: str, figure: str) -> float | None:
        """Return the median of one figure, named as in Sample; None where that server cannot do that case."""
        samples = self._samples.get((case, peer))
        return statistics.median(getattr(sample, figure) for sample in samples) if samples else None

    def ratio(self, case: Case, peer: str) -> float | None:
        """Return our rendezvous per core-second as a multiple of a peer's; None where there is nothing to compare."""
        ours, theirs = self.median(case, OURS, "rate_per_core"), self.median(case, peer, "rate_per_core")
        return ours / theirs if ours and theirs else None

    def verdicts(self) -> Iterator[Verdict]:
        """Yield every target that can be judged by what was measured."""
        for target in TARGETS:
            case = Case(Mode.CLOSED_LOOP, target.shape)
            ratio = self.ratio(case, target.peer)
            if ratio is not None:
                what = f"{case}: per core-second, of {target.peer}"
                yield Verdict(what, f"at least {target.times:.1f}", ratio, ratio >= target.times)
        ours, theirs = self.median(LATENCY, OURS, "p99_us"), self.median(LATENCY, "nats", "p99_us")
        if ours and theirs:
            yield Verdict(f"{LATENCY}: p99, of nats", "at most 1.0", ours / theirs, ours <= theirs)

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        width = max(map(len, self.settings))
        for name, value in self.settings.items():
            yield f"{name:{width}}  {value}"
        for case in self.cases():
            yield ""
            yield f"{case}:"
            yield from self._latencies() if case == LATENCY else self._rates(case)
        verdicts = list(self.verdicts())
        if verdicts:
            yield ""
            yield from table(
                ("target", "wanted", "found", ""),
                [
                    (
                        verdict.what,
                        verdict.wanted,
                        f"{verdict.found:.2f}",
                        "reached" if verdict.reached else "NOT reached",
                    )
                    for verdict in verdicts
                ],
            )

    def _rates(self, case: Case) -> Iterator[str]:
        rows = []
        for peer in self.peers:
            if (ratio := self.ratio(case, peer)) is not None or (case, peer) in self._samples:
                figures = [self.median(case, peer, name) for name in ("rate", "rate_per_core")]
                cores = [self.median(case, peer, name) for name in ("server_cores", "generator_cores")]
                rows.append(
                    (
                        peer,
                        *(f"{figure:,.0f}" for figure in figures),
                        "-" if ratio is None else f"{ratio:.2f}",
                        *(f"{core:.2f}" for core in cores),
                    )
                )
            else:
                rows.append((f"{peer} ({CANNOT})", "-", "-", "-", "-", "-"))
        heads = ("rendezvous/s", "per core-second", "skywalker is x times that", "server cores", "generator cores")
        return table(("server", *heads), rows)

    def _latencies(self) -> Iterator[str]:
        return table(
            ("server", "p50 us", "p99 us"),
            [
                (peer, *(f"{self.median(LATENCY, peer, name):,.0f}" for name in ("p50_us", "p99_us")))
                for peer in self.peers
            ],
        )

    def markdown(self) -> Iterator[str]:
        """Yield the table for a page, and how it was made."""
        cases = self.cases()
        heads = [f"{case}, p50 / p99" if case == LATENCY else str(case) for case in cases]
        yield f"| | {' | '.join(heads)} |"
        yield "|---|" + "---:|" * len(cases)
        for peer in self.peers:
            version = self.settings.get(peer, peer)
            yield f"| {version} | {' | '.join(self._cell(case, peer) for case in cases)} |"
        yield ""
        yield (
            f"Rendezvous per core-second of the server, {self.settings['method']}, "
            f"values of {self.settings['value bytes']} bytes; {self.settings['machine']}."
        )

    def markdown_of_targets(self) -> Iterator[str]:
        """Yield a table of what was wanted and found."""
        yield "| target | wanted | found | |"
        yield "|---|---|---:|---|"
        for verdict in self.verdicts():
            word = "reached" if verdict.reached else "**not reached**"
            yield f"| {verdict.what} | {verdict.wanted} | {verdict.found:.2f} | {word} |"

    def _cell(self, case: Case, peer: str) -> str:
        if case == LATENCY:
            return " / ".join(f"{self.median(case, peer, name):,.0f}" for name in ("p50_us", "p99_us")) + " us"
        rate = self.median(case, peer, "rate_per_core")
        return CANNOT if rate is None else f"{rate / 1000:,.0f} k"

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, verdicts, and what every run found in each case."""
        return {
            "settings": self.settings,
            "targets": [dataclasses.asdict(verdict) for verdict in self.verdicts()],
            "cases": [self._case(case, peer) for case, peer in self._samples],
        }

    def _case(self, case: Case, peer: str) -> dict[str, Any]:
        samples = self._samples[case, peer]
        figures = ("rate", "rate_per_core", "server_cores", "generator_cores")
        names = ("p50_us", "p99_us", *figures) if case == LATENCY else figures
        return {
            "server": peer,
            "mode": str(case.mode),
            "pairs": case.shape.pairs,
            "in_flight": case.shape.in_flight,
            **{name: self.median(case, peer, name) for name in names},
            "ratio": self.ratio(case, peer),
            "runs": [dataclasses.asdict(sample) | {"rate_per_core": sample.rate_per_core} for sample in samples],
        }
