"""What the generator of the fan-out is asked to do, and what it reports: plain data, one line of JSON each."""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

from bench.plan import Line

PAYLOAD_BYTES: Final = 16

MIN_PAYLOAD: Final = 8
"""Bytes of the shortest payload: it names its topic and its number."""


class Load(NamedTuple):
    """What is published. A topic has as many publishers as every other one, and as many subscribers, or one fewer."""

    publishers: int
    in_flight: int  # messages of each publisher that not all subscribers have
    topics: int = 1
    payload_bytes: int = PAYLOAD_BYTES

    def __str__(self) -> str:
        words = [f"{self.publishers} publisher{'s' if self.publishers > 1 else ''}", f"{self.in_flight} in flight"]
        if self.topics > 1:
            words.append(f"{self.topics} topics")
        if self.payload_bytes != PAYLOAD_BYTES:
            words.append(f"{self.payload_bytes:,} bytes")
        return ", ".join(words)

    @property
    def alone(self) -> bool:
        """Whether there is one message in flight at a time, so that how long it takes is its own doing."""
        return self.publishers * self.in_flight == 1


@dataclasses.dataclass(frozen=True, slots=True)
class Plan(Line):
    """One measurement of a server whose process is `pid`. Raises ValueError if it makes no sense."""

    server: str
    host: str
    port: int
    pid: int
    load: Load
    subscribers: int
    seconds: float
    patience_s: float = 10.0  # for connecting, and for anything that is to come

    def __post_init__(self) -> None:
        object.__setattr__(self, "load", Load(*self.load))  # JSON knows no names of a tuple
        if self.subscribers < self.load.topics:
            raise ValueError(f"{self.subscribers} subscribers are too few for {self.load.topics} topics")
        if self.load.publishers % self.load.topics:
            raise ValueError(f"{self.load.publishers} publishers cannot be shared out among {self.load.topics} topics")
        if self.load.payload_bytes < MIN_PAYLOAD:
            raise ValueError(f"payloads of {self.load.payload_bytes} bytes, the shortest are of {MIN_PAYLOAD}")


@dataclasses.dataclass(frozen=True, slots=True)
class Tally(Line):
    """What was counted, from before the first publish to the last delivery and ack."""

    seconds: float
    published: int
    delivered: int
    server_cpu_s: float  # of all its processes, user and system
    generator_cpu_s: float
    p50_us: float | None  # from publish to delivery, where one message was in flight at a time
    p99_us: float | None

    @property
    def rate(self) -> float:
        """Deliveries per second."""
        return self.delivered / self.seconds

    @property
    def rate_per_core(self) -> float:
        """Deliveries per second of CPU time of the server."""
        return self.delivered / self.server_cpu_s

    @property
    def server_cores(self) -> float:
        """Cores that the server kept busy."""
        return self.server_cpu_s / self.seconds

    @property
    def generator_cores(self) -> float:
        """Cores that the generator kept busy."""
        return self.generator_cpu_s / self.seconds
