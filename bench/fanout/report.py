"""What the fan-out bench found: medians over its runs, as tables for people and as plain data for programs."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bench.fanout.plan import PAYLOAD_BYTES, Load, Tally
from bench.report import table

OURS: Final = "skywalker"
MEASURE: Final = "redis"

WANTED: Final = 0.7
"""How many times the deliveries per core-second of MEASURE ours should be."""

COLUMNS: Final = {
    "rate": ("deliveries/s", ",.0f"),
    "rate_per_core": ("per core-second", ",.0f"),
    "ratio": (f"of {MEASURE}", ".2f"),
    "server_cores": ("server cores", ".2f"),
    "generator_cores": ("generator cores", ".2f"),
    "p50_us": ("p50 us", ",.0f"),
    "p99_us": ("p99 us", ",.0f"),
}
"""The figures of a case: their names, as in Tally but for the ratio, their headings and formats."""


class Case(NamedTuple):
    """What is measured of every server in each run."""

    load: Load
    subscribers: int

    def __str__(self) -> str:
        return f"{self.load}, {self.subscribers:,} subscriber{'s' if self.subscribers > 1 else ''}"


class Report:
    """The tallies of every server in every case."""

    def __init__(self, settings: dict[str, Any], servers: Sequence[str]) -> None:
        self.settings = settings
        self.servers = servers
        self._tallies: dict[tuple[Case, str], list[Tally]] = {}

    def add(self, case: Case, server: str, tally: Tally) -> None:
        """Take in what one run found."""
        self._tallies.setdefault((case, server), []).append(tally)

    def median(self, case: Case, server: str, figure: str) -> float | None:
        """Return the median of one figure, named as in Tally; None where it was not measured."""
        found = [getattr(tally, figure) for tally in self._tallies.get((case, server), ())]
        return statistics.median(found) if found and found[0] is not None else None

    def ratio(self, case: Case, server: str = OURS) -> float | None:
        """Return the deliveries per core-second of a server as a multiple of MEASURE's; None without one of them."""
        ours, theirs = (self.median(case, name, "rate_per_core") for name in (server, MEASURE))
        return ours / theirs if ours and theirs else None

    def lines(self) -> Iterator[str]:
        """Yield the settings and a table for each load, line by line."""
        width = max(map(len, self.settings))
        for name, value in self.settings.items():
            yield f"{name:{width}}  {value}"
        for load in self._loads():
            yield ""
            yield f"{load}:"
            yield from self._table([key for key in self._tallies if key[0].load == load])
        ratios = [ratio for case in self._cases() if (ratio := self.ratio(case)) is not None]
        if ratios:
            reached = sum(ratio >= WANTED for ratio in ratios)
            yield ""
            yield f"{OURS} per core-second: {reached} of {len(ratios)} cases reach {WANTED} of {MEASURE}; all should"

    def _table(self, keys: Sequence[tuple[Case, str]]) -> Iterator[str]:
        rows = [self.figures(case, server) for case, server in keys]
        known = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
        return table(
            ("subscribers", "server", *(COLUMNS[name][0] for name in known)),
            [
                (f"{case.subscribers:,}", server, *(format(row[name], COLUMNS[name][1]) for name in known))
                for (case, server), row in zip(keys, rows, strict=True)
            ],
        )

    def figures(self, case: Case, server: str) -> dict[str, float | None]:
        """Return the medians and the ratio by their names, as COLUMNS has them."""
        return {name: self.median(case, server, name) for name in COLUMNS if name != "ratio"} | {
            "ratio": self.ratio(case, server)
        }

    def markdown(self) -> Iterator[str]:
        """Yield the tables for a page, and how they were made."""
        crowds = list(dict.fromkeys(case.subscribers for case in self._cases()))
        heads = " | ".join(f"{crowd:,}" for crowd in crowds)
        columns = "---:|" * len(crowds)
        yield f"| subscribers | | {heads} |"
        yield f"|---|---|{columns}"
        for load in self._loads():
            for server in self.servers:
                cells = [self._rate(Case(load, crowd), server) for crowd in crowds]
                yield f"| {load if server == self.servers[0] else ''} | {self.settings[server]} | {' | '.join(cells)} |"
        if {OURS, MEASURE} <= set(self.servers):
            yield ""
            yield f"| {OURS}, 1 worker: times {MEASURE}; at least {WANTED} is wanted | {heads} |"
            yield f"|---|{columns}"
            for load in self._loads():
                yield f"| {load} | {' | '.join(self._verdict(Case(load, crowd)) for crowd in crowds)} |"
        for load in self._loads():
            if load.alone:
                yield ""
                yield f"| {load}: from publish to delivery, p50 / p99 | {heads} |"
                yield f"|---|{columns}"
                for server in self.servers:
                    cells = [self._times(Case(load, crowd), server) for crowd in crowds]
                    yield f"| {self.settings[server]} | {' | '.join(cells)} |"
        yield ""
        yield (
            f"Deliveries per core-second of the server, {self.settings['method']}, "
            f"payloads of {PAYLOAD_BYTES} bytes unless it says otherwise; {self.settings['machine']}."
        )

    def _rate(self, case: Case, server: str) -> str:
        rate = self.median(case, server, "rate_per_core")
        return "" if rate is None else f"{rate / 1000:,.0f} k"

    def _verdict(self, case: Case) -> str:
        ratio = self.ratio(case)
        if ratio is None:
            return ""
        return f"{ratio:.2f}" if ratio >= WANTED else f"**{ratio:.2f}**"

    def _times(self, case: Case, server: str) -> str:
        times = [self.median(case, server, name) for name in ("p50_us", "p99_us")]
        return " / ".join(f"{time:,.0f}" for time in times if time is not None) + " us"

    def _cases(self) -> list[Case]:
        return list(dict.fromkeys(case for case, _ in self._tallies))

    def _loads(self) -> list[Load]:
        return list(dict.fromkeys(case.load for case in self._cases()))

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and what every run found in each case."""
        return {
            "settings": self.settings,
            "wanted": WANTED,
            "cases": [
                {
                    "server": server,
                    **case.load._asdict(),
                    "subscribers": case.subscribers,
                    **self.figures(case, server),
                    "runs": [dataclasses.asdict(tally) for tally in tallies],
                }
                for (case, server), tallies in self._tallies.items()
            ],
        }
