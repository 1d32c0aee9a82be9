"""What a benchmark found: medians over its runs, as a table for people and as plain data for programs."""

from __future__ import annotations

import dataclasses
import enum
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bench.measure import Sample
from bench.plan import Mode


class Shape(NamedTuple):
    """How many pairs of connections, and how many calls each connection has in flight."""

    pairs: int
    in_flight: int

    def __str__(self) -> str:
        return f"{self.pairs} pair{'s' if self.pairs > 1 else ''} x {self.in_flight}"


class Route(enum.StrEnum):
    """Which worker a call is made on."""

    ANY = "any"  # whichever the kernel gave the connection to
    DIRECT = "direct"  # the one that owns its topic


class Case(NamedTuple):
    """What is measured in each run: one row of the table."""

    workers: int
    mode: Mode
    shape: Shape
    route: Route = Route.ANY


class Report:
    """The samples of every case."""

    def __init__(self, settings: dict[str, Any], cases: Iterable[Case]) -> None:
        self.settings = settings
        self.samples: dict[Case, list[Sample]] = {case: [] for case in cases}

    def add(self, case: Case, sample: Sample) -> None:
        """Take in what one run found."""
        self.samples[case].append(sample)

    def median(self, case: Case, figure: str) -> float:
        """Return the median of one figure, named as in Sample, over the runs of a case."""
        found: list[float] = [getattr(sample, figure) for sample in self.samples[case]]
        return statistics.median(found)

    def scaling(self, case: Case) -> float | None:
        """Return a case's rendezvous per core-second, as a part of what one worker has of the same shape."""
        alone = case._replace(workers=1, route=Route.ANY)
        if alone not in self.samples:
            return None
        return self.median(case, "rate_per_core") / self.median(alone, "rate_per_core")

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        width = max(map(len, self.settings))
        for name, value in self.settings.items():
            yield f"{name:{width}}  {', '.join(map(str, value)) if isinstance(value, list) else value}"
        rates = [case for case in self.samples if case.mode == Mode.CLOSED_LOOP]
        if rates:
            yield ""
            heads = ("rendezvous/s", "per core-second", "of 1 worker", "forwarded", "server cores", "generator cores")
            yield from table(
                ("workers", "shape", "worker of a call", *heads),
                [
                    (
                        str(case.workers),
                        str(case.shape),
                        str(case.route),
                        f"{self.median(case, 'rate'):,.0f}",
                        f"{self.median(case, 'rate_per_core'):,.0f}",
                        "-" if (scaling := self.scaling(case)) is None else f"{scaling:.2f}",
                        f"{self.median(case, 'forwarded'):.0%}",
                        f"{self.median(case, 'server_cores'):.2f}",
                        f"{self.median(case, 'generator_cores'):.2f}",
                    )
                    for case in rates
                ],
            )
        latencies = [case for case in self.samples if case.mode == Mode.LOCKSTEP]
        if latencies:
            yield ""
            yield from table(
                ("workers", "one rendezvous at a time", "worker of a call", "p50 us", "p99 us"),
                [
                    (
                        str(case.workers),
                        f"{case.shape.pairs} pairs in turn",
                        str(case.route),
                        f"{self.median(case, 'p50_us'):,.0f}",
                        f"{self.median(case, 'p99_us'):,.0f}",
                    )
                    for case in latencies
                ],
            )

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and for each case its medians and what every run found."""
        return {"settings": self.settings, "cases": [self._case(case) for case in self.samples]}

    def _case(self, case: Case) -> dict[str, Any]:
        data: dict[str, Any] = {
            "workers": case.workers,
            "mode": str(case.mode),
            "pairs": case.shape.pairs,
            "in_flight": case.shape.in_flight,
            "route": str(case.route),
            "rate": self.median(case, "rate"),
            "rate_per_core": self.median(case, "rate_per_core"),
        }
        if case.mode == Mode.CLOSED_LOOP:
            data["of_one_worker"] = self.scaling(case)
            data["forwarded"] = self.median(case, "forwarded")
        else:
            data["p50_us"] = self.median(case, "p50_us")
            data["p99_us"] = self.median(case, "p99_us")
        data["runs"] = [
            dataclasses.asdict(sample) | {"rate_per_core": sample.rate_per_core} for sample in self.samples[case]
        ]
        return data


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield an aligned table: columns of numbers to the right, others to the left."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [not "".join(column[1:]).strip("-0123456789,.%") for column in columns]
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        yield "  ".join(cells).rstrip()
