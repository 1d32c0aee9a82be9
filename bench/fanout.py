"""skywalker's pub/sub beside Redis and NATS, to 1 to 1,000 subscribers: `python -m bench.fanout`.

Publishers keep so many messages in flight, as bench.load.publications says, and every delivery to every subscriber is
counted. A server's cost is the CPU time of all its processes from before the first publish to after the last
delivery.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import click

from bench.figures.command import Findings, command, several, show_progress
from bench.figures.samples import VALUE_BYTES, Sample, Samples, figure, markdown, measure_in_turn, table
from bench.figures.targets import Target
from bench.load.plan import Load
from bench.servers.peer import Running
from bench.servers.pubsub import DIALECTS

OURS: Final = "skywalker"
MEASURE: Final = "redis"

NATIVE: Final = "native"

OF_NATIVE: Final = 1.3
"""How many times the deliveries to subscribers in MessagePack those at the pub/sub door may be."""

COLUMNS: Final = {
    "rate": ("deliveries/s", ",.0f"),
    "rate_per_core": ("per core-second", ",.0f"),
    "ratio": (f"of {MEASURE}", ".2f"),
    "server_cores": ("server cores", ".2f"),
    "generator_cores": ("generator cores", ".2f"),
    "p50_us": ("p50 us", ",.0f"),
    "p99_us": ("p99 us", ",.0f"),
}
"""The figures of a case: their names, as in Sample but for the ratio, their headings and formats."""


class Published(NamedTuple):
    """What is published."""

    publishers: int
    in_flight: int  # messages of each publisher that not all subscribers have
    topics: int = 1
    payload_bytes: int = VALUE_BYTES

    def __str__(self) -> str:
        words = [f"{self.publishers} publisher{'s' if self.publishers > 1 else ''}", f"{self.in_flight} in flight"]
        if self.topics > 1:
            words.append(f"{self.topics} topics")
        if self.payload_bytes != VALUE_BYTES:
            words.append(f"{self.payload_bytes:,} bytes")
        return ", ".join(words)

    @property
    def alone(self) -> bool:
        """Whether there is one message in flight at a time, so that how long it takes is its own doing."""
        return self.publishers * self.in_flight == 1


class Case(NamedTuple):
    """What is measured of every server in each run."""

    load: Published
    subscribers: int

    def __str__(self) -> str:
        return f"{self.load}, {self.subscribers:,} subscriber{'s' if self.subscribers > 1 else ''}"


class Report(Samples[Case, str]):
    """The samples of every server in every case."""

    def of_measure(self, case: Case, server: str = OURS) -> float | None:
        """Return the deliveries per core-second of a server as a multiple of MEASURE's; None without one of them."""
        return self.ratio(case, server, MEASURE)

    def lines(self) -> Iterator[str]:
        """Yield the settings and a table for each load, line by line."""
        yield from self.settings_lines()
        for load in self._loads():
            yield ""
            yield f"{load}:"
            keys = [key for key in self.samples if key[0].load == load]
            rows = [self.figures(*key) for key in keys]
            known = [name for name in COLUMNS if any(row[name] is not None for row in rows)]
            yield from table(
                ("subscribers", "server", *(COLUMNS[name][0] for name in known)),
                [
                    (f"{case.subscribers:,}", server, *(figure(row[name], COLUMNS[name][1]) for name in known))
                    for (case, server), row in zip(keys, rows, strict=True)
                ],
            )

    def targets(self) -> Iterator[Target]:
        """Yield every target that can be judged by what was measured, that of the worst crowd for each load."""
        for load in self._loads():
            cases = [case for case in self.cases() if case.load == load]
            ratios = {case: ratio for case in cases if (ratio := self.of_measure(case))}
            if ratios:
                case = min(ratios, key=lambda case: ratios[case] / FORMER.get(case, 1.0))
                yield Target(f"{case}: per core-second, of {MEASURE}", ratios[case], FORMER.get(case, 1.0))
            if SOLE in ratios:
                yield Target(f"{SOLE}: per core-second, of {MEASURE}", ratios[SOLE], TO_ONE)
        ratios = {case: ratio for case in self.cases() if (ratio := self.ratio(case, OURS, NATIVE))}
        if ratios:
            case = max(ratios, key=lambda case: ratios[case])
            yield Target(f"{case}: per core-second, of the same in MessagePack", ratios[case], OF_NATIVE, at_most=True)

    def figures(self, case: Case, server: str) -> dict[str, float | None]:
        """Return the medians and the ratio by their names, as COLUMNS has them."""
        found = {name: self.median(case, server, name) for name in COLUMNS if name != "ratio"}
        return found | {"ratio": self.of_measure(case, server)}

    def markdown(self) -> Iterator[str]:
        """Yield the tables for a page, and how they were made."""
        crowds = list(dict.fromkeys(case.subscribers for case in self.cases()))
        heads = [f"{crowd:,}" for crowd in crowds]
        servers = self.servers()
        rows = [
            [
                str(load) if server == servers[0] else "",
                self.settings[server],
                *(self._rate(Case(load, crowd), server) for crowd in crowds),
            ]
            for load in self._loads()
            for server in servers
        ]
        yield from markdown(["subscribers", "", *heads], rows, words=2)
        if {OURS, MEASURE} <= set(servers):
            yield ""
            rows = [[str(load), *(self._verdict(Case(load, crowd)) for crowd in crowds)] for load in self._loads()]
            yield from markdown([f"{OURS}, 1 worker: times {MEASURE}", *heads], rows)
        for load in filter(lambda load: load.alone, self._loads()):
            yield ""
            rows = [
                [self.settings[server], *(self._times(Case(load, crowd), server) for crowd in crowds)]
                for server in servers
            ]
            yield from markdown([f"{load}: from publish to delivery, p50 / p99", *heads], rows)
        yield ""
        yield (
            f"Deliveries per core-second of the server, {self.settings['method']}, "
            f"payloads of {VALUE_BYTES} bytes unless it says otherwise; {self.settings['machine']}."
        )

    def _rate(self, case: Case, server: str) -> str:
        rate = self.median(case, server, "rate_per_core")
        return "" if rate is None else f"{rate / 1000:,.0f} k"

    def _verdict(self, case: Case) -> str:
        ratio = self.of_measure(case)
        if ratio is None:
            return ""
        return f"{ratio:.2f}" if ratio >= FORMER.get(case, 0.0) else f"**{ratio:.2f}**"

    def _times(self, case: Case, server: str) -> str:
        times = [self.median(case, server, name) for name in ("p50_us", "p99_us")]
        return " / ".join(f"{time:,.0f}" for time in times if time is not None) + " us"

    def _loads(self) -> list[Published]:
        return list(dict.fromkeys(case.load for case in self.cases()))

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it: settings, and what every run found in each case."""
        return {
            "settings": self.settings,
            "cases": [
                {
                    "server": server,
                    **case.load._asdict(),
                    "subscribers": case.subscribers,
                    **self.figures(case, server),
                    "runs": [_run(sample) for sample in samples],
                }
                for (case, server), samples in self.samples.items()
            ],
        }


def _run(sample: Sample) -> dict[str, Any]:
    return {
        "seconds": sample.seconds,
        "published": sample.sent,
        "delivered": sample.received,
        "server_cpu_s": sample.server_cores * sample.seconds,
        "generator_cpu_s": sample.generator_cores * sample.seconds,
        "p50_us": sample.p50_us,
        "p99_us": sample.p99_us,
    }


LOADS: Final = {
    "1x1": Published(1, 1),
    "1x64": Published(1, 64),
    "8x1": Published(8, 1),
    "8x64": Published(8, 64),
    "8x64-topics": Published(8, 64, topics=8),
    "1x64-1KiB": Published(1, 64, payload_bytes=1024),
}

SUBSCRIBERS: Final = (1, 10, 100, 1000)

_FORMER: Final = {
    "1x1": (1.05, 1.06, 1.03, 0.92),
    "1x64": (0.87, 1.27, 1.26, 1.48),
    "8x1": (0.96, 1.10, 1.03, 1.12),
    "8x64": (0.92, 1.43, 2.16, 2.41),
    "8x64-topics": (0.0, 0.79, 1.18, 1.18),
    "1x64-1KiB": (0.83, 1.13, 1.15, 2.53),
}
"""How many times the deliveries of MEASURE a worker in Python made, which the one in C is not to fall behind."""

FORMER: Final = {
    Case(LOADS[name], crowd): times
    for name, ratios in _FORMER.items()
    for crowd, times in zip(SUBSCRIBERS, ratios, strict=True)
}

SOLE: Final = Case(LOADS["1x64"], 1)
TO_ONE: Final = 1.3
"""How many times those of MEASURE are wanted in that case."""

PATIENCE_S: Final = 10.0


def load_of(name: str, server: Running, case: Case, patience_s: float = PATIENCE_S) -> Load:
    """Return what a case is on a server. Raises ValueError if it makes no sense."""
    publishers, in_flight, topics, payload_bytes = case.load
    return Load(
        server.host, server.port, pairs=publishers, in_flight=in_flight, topics=topics, value_bytes=payload_bytes,
        subscribers=case.subscribers, server=name, strict=True, patience_s=patience_s,
    )  # fmt: skip


@command(runs=3, seconds=0.4, quick=0.1, json=True, markdown=["fanout"])
@several("--load", "loads", LOADS, "Publishers x messages in flight of each")
@click.option(
    "--subscribers",
    type=click.IntRange(1, 10_000),
    multiple=True,
    default=SUBSCRIBERS,
    help="How many; may be repeated.",
)
@several("--server", "servers", DIALECTS, "A server")
def main(
    runs: int, seconds: float, loads: tuple[str, ...], subscribers: tuple[int, ...], servers: tuple[str, ...]
) -> Findings:
    """Compare what a delivery costs skywalker, with one worker and with two, Redis and NATS.

    The servers are started for it, on free ports of loopback, and stopped. A core-second is one of CPU time, user
    and system, of all processes of a server.
    """
    running = {name: dialect.started for name, dialect in DIALECTS.items() if name in servers}
    chosen = [load for name, load in LOADS.items() if name in loads]
    # A load whose topics are more than the subscribers is left out.
    cases = [Case(load, count) for load in chosen for count in subscribers if count >= load.topics]
    report = Report(servers=[*running])
    measure_in_turn(report, running, cases, load_of, runs, seconds, show_progress)
    report.settings |= {name: report.settings[name] + DIALECTS[name].note for name in running}
    return Findings(report.lines(), report.to_data(), {"fanout": report.markdown()}, targets=[*report.targets()])


if __name__ == "__main__":
    main()
