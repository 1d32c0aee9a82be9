"""What a generator process is asked to do, and what it reports: plain data, one line of JSON each."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Final, Self

READY: Final = "ready"
"""What a generator writes once it is connected."""


class Mode(enum.StrEnum):
    """In which way calls are made."""

    CLOSED_LOOP = "closed-loop"  # every lane always has a recv! and a send! in flight; what counts is the rate
    LOCKSTEP = "lockstep"  # one rendezvous at a time, the pairs in turn; what counts is the time it takes


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """Anything here that crosses a pipe."""

    def to_json(self) -> str:
        """Return it as one line, without its end."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read what to_json() wrote."""
        return cls(**json.loads(line))


@dataclasses.dataclass(frozen=True, slots=True)
class Plan(Line):
    """One generator's share of the pairs: `pairs` of them, numbered from `first_pair`."""

    mode: Mode
    host: str
    port: int
    name: str  # in the topics, so that runs on one node stay apart
    pairs: int
    in_flight: int
    first_pair: int = 0
    value_bytes: int = 16
    server: str = "skywalker"  # whose bytes are spoken
    patience_s: float = 5.0  # for connecting, and for the last calls to be answered
    ca: str = ""  # file with the authorities to trust; without one no TLS is spoken
    token: str = ""  # said first on every connection, if there is one

    def share(self, part: int, parts: int) -> Plan:
        """Return part number `part` of this plan divided among `parts` generators."""
        first, end = (self.pairs * number // parts for number in (part, part + 1))
        return dataclasses.replace(self, first_pair=self.first_pair + first, pairs=end - first)


@dataclasses.dataclass(frozen=True, slots=True)
class Window(Line):
    """When to count: two times on time.monotonic(), which all processes of a machine share."""

    start: float
    stop: float


@dataclasses.dataclass(frozen=True, slots=True)
class Tally(Line):
    """What one generator counted. Calls go on before and after the window; totals count those too."""

    seconds: float  # the window as it really was
    sent: int  # send!s answered true in it
    received: int  # values received in it
    total_sent: int
    total_received: int
    cpu_s: float  # the generator's own, in the window
    latencies_us: list[float] = dataclasses.field(default_factory=list)  # of each rendezvous, in LOCKSTEP only
