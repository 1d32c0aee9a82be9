"""What a load is, divided among generator processes, and what they count: plain data, which crosses pipes as JSON."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Sequence
from typing import Final, Self

from bench.servers.peer import MAX_LANES, MIN_VALUE_BYTES
from skywalker.limits import DEFAULT_HOST, DEFAULT_PORT

MAX_VALUE_BYTES: Final = 65_000
"""Bytes of the longest value: with its topic and all else it fits in a frame."""


class Line:
    """Anything that crosses a pipe as a line of JSON."""

    __slots__ = ()

    def to_json(self) -> str:
        """Return it as one line, without its end."""
        return json.dumps(dataclasses.asdict(self))  # type: ignore[call-overload]  # all of them are dataclasses

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read what to_json() wrote."""
        return cls(**json.loads(line))


@dataclasses.dataclass(frozen=True, slots=True)
class Window(Line):
    """When to count: two times on time.monotonic(), which all processes of a machine share."""

    start: float
    stop: float


@dataclasses.dataclass(frozen=True, slots=True)
class Load(Line):
    """Calls to be made on a server. Each pair is a connection that receives and one that sends.

    A call in flight has a lane of its own, and the lanes share `topics` evenly, those of one pair
    next to each other. Pairs that share topics are a *group*.

    With `subscribers`, messages are published to them instead. There is a publisher for each pair, and a topic has as
    many publishers as every other one, and as many subscribers, or one fewer.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    prefix: str = "bench"  # of all topics
    pairs: int = 8
    in_flight: int = 64  # calls of each connection; of a publisher, messages that not all subscribers have
    rate: float = 0.0  # send! calls a second in all; 0 makes each again as soon as it is answered
    value_bytes: int = 16
    topics: int = 0  # 0 gives each lane its own
    subscribers: int = 0
    in_turn: bool = False  # one rendezvous at a time, the pairs in turn
    server: str = "skywalker"  # whose bytes are spoken
    dialect: str = "current"
    takes: bool = False  # a value that is sent comes to one call of its topic, not to all that wait
    direct: bool = False  # connect to the worker that owns a pair's topics
    ca: str = ""  # file with the authorities to trust; without one no TLS is spoken
    token: str = ""  # said first on every connection, if there is one
    timed: bool = True  # whether it is noted how long each send! took
    strict: bool = False  # whether the first thing that goes wrong ends the load; else all of it is counted
    timeout_s: float = 60.0
    patience_s: float = 5.0  # for connecting, and for the last calls to be answered
    first_group: int = 0  # this part's share of the groups
    end_group: int = 0  # 0 for all
    generator: int = 0  # number of this part
    journal: str = ""  # directory in which every call is recorded; empty for none

    def __post_init__(self) -> None:
        """Raises ValueError where lanes or values could not be told apart, or would not fit."""
        if not 1 <= self.in_flight <= MAX_LANES:
            raise ValueError(f"{self.in_flight} calls in flight on a connection, allowed are 1 to {MAX_LANES}")
        if not MIN_VALUE_BYTES <= self.value_bytes <= MAX_VALUE_BYTES:
            raise ValueError(f"values of {self.value_bytes} bytes, allowed are {MIN_VALUE_BYTES} to {MAX_VALUE_BYTES}")
        if self.in_turn and (self.in_flight > 1 or self.ca):
            raise ValueError("one rendezvous at a time has one call in flight on a connection, and no TLS")
        if self.subscribers and self.subscribers < self.topics:
            raise ValueError(f"{self.subscribers} subscribers are too few for {self.topics} topics")
        if self.subscribers and self.pairs % (self.topics or 1):
            raise ValueError(f"{self.pairs} publishers cannot be shared out among {self.topics} topics")
        if self.topics > self.pairs * self.in_flight:
            raise ValueError(f"{self.topics} topics for {self.pairs * self.in_flight} calls in flight: some have none")

    @property
    def topic_count(self) -> int:
        """Topics of the whole load."""
        return self.topics or self.pairs * self.in_flight

    @property
    def shared(self) -> bool:
        """Whether calls in flight share topics, so that one send! may reach several receivers."""
        return self.topic_count < self.pairs * self.in_flight and not self.takes

    @property
    def groups(self) -> int:
        """Groups of the whole load: pairs with their own topics, or topics with their own pairs."""
        return min(self.pairs, self.topic_count)

    def group_of(self, pair: int) -> int:
        """Return the group that a pair belongs to."""
        return pair * self.groups // self.pairs

    def own_pairs(self) -> list[int]:
        """Return the pairs of this part."""
        end = self.end_group or self.groups
        return [pair for pair in range(self.pairs) if self.first_group <= self.group_of(pair) < end]

    def topics_of(self, pair: int) -> range:
        """Return the topics that a pair's lanes share."""
        first, end = (number * self.topic_count // self.pairs for number in (pair, pair + 1))
        return range(first, max(end, first + 1))

    def topics_by_lane(self, pair: int) -> Sequence[int]:
        """Return the number of the topic of each of a pair's lanes."""
        numbers = self.topics_of(pair)
        return [numbers[lane % len(numbers)] for lane in range(self.in_flight)]

    def value_of(self, topic: int) -> bytes:
        """Return what is sent to a topic, always the same: a receiver's right reply is known, however many share it.

        No other topic is sent the same. Where each lane has its own, its lane is the eighth byte.
        """
        pair, lane = divmod(topic, self.in_flight)
        return (pair.to_bytes(4, "big") + lane.to_bytes(4, "big")).ljust(self.value_bytes, b".")

    def parts(self, count: int) -> list[Load]:
        """Divide it among at most `count` generators, no topic between two of them, the rate as the pairs."""
        count = min(count, self.groups)
        bounds = [self.groups * number // count for number in range(count + 1)]
        parts = [
            dataclasses.replace(self, generator=number, first_group=first, end_group=end)
            for number, (first, end) in enumerate(itertools.pairwise(bounds))
        ]
        return [dataclasses.replace(part, rate=self.rate * len(part.own_pairs()) / self.pairs) for part in parts]


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
class Counts(Line):
    """What happened in one second."""

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

    def __post_init__(self) -> None:
        self.latencies_us = {int(us): count for us, count in self.latencies_us.items()}  # JSON has names for keys

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
