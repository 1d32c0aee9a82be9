"""What was found of nodes with more and more workers: as a table for people and as plain data for programs."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.figures.samples import Mode, Samples, Shape, figure, table


class Route(enum.StrEnum):
    """Which worker a call is made on."""

    ANY = "any"  # whichever the kernel gave the connection to
    DIRECT = "direct"  # the one that owns its topic


class Case(NamedTuple):
    """What is done."""

    mode: Mode
    shape: Shape


class Node(NamedTuple):
    """On what it is done: a node of so many workers, and how its calls come there."""

    workers: int
    route: Route = Route.ANY


class Report(Samples[Case, Node]):
    """The samples of every case on every node."""

    def scaling(self, case: Case, node: Node) -> float | None:
        """Return rendezvous per core-second, as a part of what one worker has of the same shape."""
        return self.ratio(case, node, Node(1))

    def lines(self) -> Iterator[str]:
        """Yield the settings and the tables, line by line."""
        yield from self.settings_lines()
        rates = [
            (
                str(node.workers),
                str(case.shape),
                str(node.route),
                *(figure(self.median(case, node, name)) for name in ("rate", "rate_per_core")),
                figure(self.scaling(case, node), ".2f"),
                figure(self.median(case, node, "forwarded"), ".0%"),
                *(figure(self.median(case, node, name), ".2f") for name in ("server_cores", "generator_cores")),
            )
            for case, node in self.samples
            if case.mode == Mode.CLOSED_LOOP
        ]
        if rates:
            yield ""
            heads = ("rendezvous/s", "per core-second", "of 1 worker", "forwarded", "server cores", "generator cores")
            yield from table(("workers", "shape", "worker of a call", *heads), rates)
        latencies = [
            (
                str(node.workers),
                f"{case.shape.pairs} pairs in turn",
                str(node.route),
                *(figure(self.median(case, node, name)) for name in ("p50_us", "p99_us")),
            )
            for case, node in self.samples
            if case.mode == Mode.LOCKSTEP
        ]
        if latencies:
            yield ""
            yield from table(("workers", "one rendezvous at a time", "worker of a call", "p50 us", "p99 us"), latencies)

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and for each case its medians and what every run found."""
        return {"settings": self.settings, "cases": [self._case(*key) for key in self.samples]}

    def _case(self, case: Case, node: Node) -> dict[str, Any]:
        names = ("forwarded",) if case.mode == Mode.CLOSED_LOOP else ("p50_us", "p99_us")
        return {
            "workers": node.workers,
            "mode": str(case.mode),
            **case.shape._asdict(),
            "route": str(node.route),
            **{name: self.median(case, node, name) for name in ("rate", "rate_per_core", *names)},
            **({"of_one_worker": self.scaling(case, node)} if case.mode == Mode.CLOSED_LOOP else {}),
            "runs": self.runs(case, node),
        }
