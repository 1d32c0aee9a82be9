"""What a load test found: the rate second by second, the latencies of all of it, and what failed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

from hdrh.histogram import HdrHistogram

from bench.load.plan import AFTER, Counts, Load
from bench.servers.usage import Usage

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 100.0)

LONGEST_US: Final = 24 * 3600 * 1_000_000
"""A call waits for a day at most; a histogram has a top."""

SATURATED: Final = 0.9
"""Of a core, from which on a generator is taken to be the bottleneck: it has no time left to be on time."""

BEHIND_S: Final = 0.05
"""Seconds' worth of calls that an open loop may have ahead of it at the end and still be on schedule."""


def histogram() -> HdrHistogram:
    """Return an empty histogram of microseconds, exact to three digits."""
    return HdrHistogram(1, LONGEST_US, 3)


def record(into: HdrHistogram, latencies_us: dict[int, int]) -> None:
    """Add how many calls took how long."""
    for us, count in latencies_us.items():
        into.record_value(max(1, us), count)


@dataclasses.dataclass(frozen=True, slots=True)
class Second:
    """One second of a load test, or a part of one at its end."""

    seconds: float
    rate: float  # rendezvous a second
    p50_us: float | None  # None if nothing was answered
    p99_us: float | None
    errors: int


class Outcome:
    """What was found so far, or in all."""

    def __init__(self, load: Load, warm_up_s: float, generators: int) -> None:
        self.load = load
        self.warm_up_s = warm_up_s
        self.generators = generators
        self.timeline: list[Second] = []
        self.total = Counts(AFTER)  # latencies are in the histogram
        self.seconds = 0.0
        self._within = Counts(0)  # the window, to which the rate belongs; totals are until the last answer
        self.latencies = histogram()
        self.interrupted = False
        self.server: Usage | None = None
        self.server_ended = False
        self.busiest_s = 0.0  # CPU time of the busiest generator

    def add(self, counts: Counts, busiest_s: float) -> None:
        """Take in one second of all generators."""
        record(self.latencies, counts.latencies_us)
        if counts.second != AFTER:
            own = histogram()
            record(own, counts.latencies_us)
            p50, p99 = (
                (float(own.get_value_at_percentile(percent)) if own.total_count else None) for percent in (50, 99)
            )
            errors = sum(counts.errors.values())
            self.timeline.append(Second(counts.seconds, counts.sent / counts.seconds, p50, p99, errors))
            self.seconds += counts.seconds
            self._within.add(dataclasses.replace(counts, latencies_us={}))
            self.busiest_s += busiest_s
            self.total.behind = 0
        self.total.strays = 0
        self.total.add(dataclasses.replace(counts, latencies_us={}))

    @property
    def rendezvous(self) -> int:
        """Those in the window; of publications, the deliveries."""
        if self.load.subscribers:
            return self._within.received
        # Of one at the edge of the window a reply may be on either side; where topics are shared, more are received.
        return min(self._within.sent, self._within.received)

    @property
    def rate(self) -> float:
        """Rendezvous a second."""
        return self.rendezvous / self.seconds if self.seconds else 0.0

    @property
    def errors(self) -> dict[str, int]:
        """How many calls failed, by code, the most frequent first."""
        return dict(Counter(self.total.errors).most_common())

    @property
    def rate_per_core(self) -> float | None:
        """Rendezvous per second of CPU time of the server, None if it was not watched."""
        return self.rate / self.server_cores if self.server_cores else None

    @property
    def server_cores(self) -> float:
        """Cores that the server kept busy, 0 if it was not watched."""
        if self.server is None or not self.seconds:
            return 0.0
        # Publications come to rest, and the server with them, before anybody looks.
        return self.server.cpu_s / self.seconds if self.load.subscribers else self.server.cores

    @property
    def forwarded(self) -> float | None:
        """The share of calls that a worker had to pass to another, None if the node does not say who owns what."""
        return self.total.forwarded / self.total.placed if self.total.placed else None

    @property
    def generator_cores(self) -> float:
        """Cores that all generators kept busy."""
        return self.total.cpu_s / self.seconds if self.seconds else 0.0

    def percentile_us(self, percent: float) -> float | None:
        """Return the microseconds that `percent` of the calls did not exceed, None if there were none."""
        if not self.latencies.total_count:
            return None
        return float(self.latencies.get_value_at_percentile(percent))

    def curve(self) -> Iterator[tuple[float, float]]:
        """Yield percentiles and their microseconds, closer and closer towards 100."""
        for step in self.latencies.get_percentile_iterator(10):
            yield step.percentile_level_iterated_to, step.value_iterated_to

    def write_hdr(self, file: BinaryIO) -> None:
        """Write the percentiles as HdrHistogram's plotters read them, in microseconds."""
        self.latencies.output_percentile_distribution(file, 1.0)

    def warnings(self) -> Iterable[str]:
        """Yield what keeps the figures from being what they seem."""
        if self.seconds and self.busiest_s / self.seconds > SATURATED:
            yield (
                f"a generator was busy for {self.busiest_s / self.seconds:.0%} of the time: the figures are the "
                "generator's as much as the node's. More --generators, on cores of their own, would tell"
            )
        if self.load.rate and self.total.behind > max(1.0, self.load.rate * BEHIND_S):
            yield (
                f"{self.total.behind:,} calls that were due had not been made at the end: the rate is more than could "
                "be kept up, and latencies only say how long the test was"
            )
        if self.load.direct and self.total.strays:
            yield f"{self.total.strays} connections did not get to the worker that owns their topics"
        if self.total.example:
            yield f"no correct node gives this reply: {self.total.example}"
        if self.server_ended:
            yield "the server's process ended meanwhile: what it used is not known"

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it; times in seconds and microseconds."""
        return {
            "load": dataclasses.asdict(self.load),
            "generators": self.generators,
            "warm_up_s": self.warm_up_s,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "rendezvous": self.rendezvous,
            "rate": self.rate,
            "received": self.total.received,
            "latency_us": {f"p{percent:g}": self.percentile_us(percent) for percent in PERCENTILES},
            "errors": self.errors,
            "moved": self.total.moved,
            "behind": self.total.behind,
            "forwarded": self.forwarded,
            "server": dataclasses.asdict(self.server) if self.server else None,
            "rate_per_core": self.rate_per_core,
            "generator_cores": self.generator_cores,
            "warnings": list(self.warnings()),
            "timeline": [dataclasses.asdict(second) for second in self.timeline],
        }
