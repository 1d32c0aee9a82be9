"""What generators count, a second at a time."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import Self

LOST = "connection-lost"
UNREACHABLE = "unreachable"
TIMED_OUT = "timed-out"
WRONG = "wrong-reply"
UNANSWERED = "unanswered"
NOT_RECEIVED = "not-received"
DOUBLED = "received-twice"

AFTER = -1
"""In place of a second: what was answered after the end, to calls that were made before."""


@dataclasses.dataclass(slots=True)
class Counts:
    """What happened in one second; crosses a pipe as a line of JSON."""

    second: int  # of the window, from 0; AFTER it
    seconds: float = 0.0  # how long it really was
    sent: int = 0  # send!s answered true
    received: int = 0  # values received
    forwarded: int = 0  # calls answered well that had come to a worker that does not own their topic
    placed: int = 0  # calls answered well of which that is known
    behind: int = 0  # calls of an open loop that were due and not yet made, at its end
    moved: int = 0  # connections left for another, whose worker refused calls since it drains, or closed it unused
    strays: int = 0  # connections that should be to an owner and are not, at its end
    cpu_s: float = 0.0  # the generator's own
    errors: dict[str, int] = dataclasses.field(default_factory=dict)  # by code
    latencies_us: dict[int, int] = dataclasses.field(default_factory=dict)  # of send!s: how many took so long
    example: str = ""  # a reply that no correct node gives

    def to_json(self) -> str:
        """Return it as one line, without its end."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read what to_json() wrote."""
        fields = json.loads(line)
        fields["latencies_us"] = {int(us): count for us, count in fields["latencies_us"].items()}
        return cls(**fields)

    def fail(self, code: str, calls: int = 1) -> None:
        """Count calls that failed."""
        if calls:
            self.errors[code] = self.errors.get(code, 0) + calls

    def add(self, other: Counts) -> None:
        """Take in what another generator counted in the same time."""
        for field in ("sent", "received", "forwarded", "placed", "behind", "moved", "strays", "cpu_s"):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.seconds = max(self.seconds, other.seconds)
        self.errors = dict(Counter(self.errors) + Counter(other.errors))
        self.latencies_us = dict(Counter(self.latencies_us) + Counter(other.latencies_us))
        self.example = self.example or other.example
