"""What clients said, what they heard, and what the kernel took for them: the raw material of the rules."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgpack

from skywalker.wire import junction as wire
from tests.promises.excuses import (
    DIED_UNHEARD,
    ENDS_UNHEARD,
    EXCUSES,
    GIVEN_UP_S,
    HEARD_LATE,
    IN_A_STEP_S,
    KILLED_STANDING,
    LOST_UNHEARD,
    RELAY_STOPPED_IN_A_RELOAD,
    STOPPED_IN_A_RELOAD,
    TWO_KILLS,
    TWO_RELOADS,
    UNDECIDED_S,
)

NEVER_S: Final = float("inf")

Span = tuple[float, float]
"""From when to when."""

SINCE_THE_FIRST: Final = (KILLED_STANDING, LOST_UNHEARD, DIED_UNHEARD, ENDS_UNHEARD)
UNTIL_THE_LAST: Final = (HEARD_LATE, LOST_UNHEARD, DIED_UNHEARD)
"""Kinds of trouble that begin with the first of the two that they are, or end with the last."""

TRUE: Final = "true"
VALUE: Final = "a value"
TIMED_OUT: Final = "timed out"
CANCELLED: Final = "cancelled"
UNKNOWN: Final = "unknown-outcome"
UNREACHABLE: Final = "unreachable"
LOST: Final = "connection lost"
UNANSWERED: Final = "nothing"


@dataclass
class Call:
    """One call of a client: a send!, recv! or take!."""

    connection: Connection
    id: int
    method: str
    topic: str
    value: str  # of a send!
    at: float
    timeout_s: float
    answer: str = UNANSWERED
    answered_at: float = NEVER_S
    answers: int = 0
    copies: list[Copy] = field(default_factory=list)  # of one that a client library makes
    got: str = ""  # what a listener was told by such a library

    @property
    def waits_since(self) -> float:
        """Since when it is with the node that answers it."""
        return self.copies[-1].at if self.copies else self.at

    def __str__(self) -> str:
        return f"{self.method} {self.id} of {self.connection.client} on {self.topic}"


@dataclass
class Copy:
    """A time that a client library gave a call of its program to a node: on one connection, and perhaps on the next."""

    at: float  # when the kernel had all of it
    lost_at: float  # when that connection was over, and the library was told
    mute_at: float = NEVER_S  # since when nothing passed there, of which it was not told
    opened_at: float = 0.0  # when there was that connection
    full: list[Span] = field(default_factory=list)  # when its kernel took no more for that
    answer: str = UNANSWERED  # by the node, as the kernel took it for the library
    value: str = ""
    answered_at: float = NEVER_S
    is_acked: bool = False  # by the library, which wanted the value
    is_cancelled: bool = False  # by the library, for whatever reason


@dataclass
class Published:
    """What a client published."""

    connection: Connection
    topic: str
    value: str
    at: float
    acked_at: float = NEVER_S
    failed_at: float = NEVER_S  # when a client library said that it does not know whether it was

    def __str__(self) -> str:
        return f"{self.value!r} on {self.topic}"


@dataclass
class Given:
    """A value that the kernel took for a client's connection."""

    at: float
    connection: Connection
    method: str
    id: int
    topic: str
    value: str

    @property
    def is_subscribed(self) -> bool:
        """Whether it was given to a subscription, not for a call."""
        return not self.method.endswith("!")

    @property
    def is_sure(self) -> bool:
        """Whether that is enough, and no word of the client is waited for."""
        return self.is_subscribed or not self.connection.acks

    @property
    def is_kept(self) -> bool:
        """Whether its client did not give it back: one that acknowledges values does so if it cancels the call."""
        call = self.connection.calls.get(self.id)
        by_library = call is not None and any(each.is_cancelled for each in call.copies)  # as it leaves a node
        by_client = any(each.call.id == self.id for each in self.connection.cancels.values())
        return self.is_sure or not (by_library or by_client)


@dataclass
class Trouble:
    """What happened to a node, one of its workers, or a client; of what kind, from when to when."""

    kind: str
    node: str
    since: float
    until: float
    worker: int | None = None

    def touches(self, begin: float, end: float) -> bool:
        """Return whether some of it was between two times."""
        return self.since <= end and self.until >= begin


@dataclass
class Cancel:
    """A :cancel of a call."""

    call: Call
    answer: Any = None
    is_early: bool = False
    """Whether it was answered before the call was."""


@dataclass
class Connection:
    """One connection of a client."""

    client: str
    opened_at: float
    stops: list[Trouble]  # when its client stood still
    node: str = ""  # that it is to, where one is meant
    worker: int | None = None  # of that node, which had it last, where that is known
    is_whole: bool = True  # `given` is all that the kernel took for it, not only what its client came to read
    taken_until: float = 0.0  # until when its node takes it for alive, if that is after its end
    closed_at: float = NEVER_S
    is_cut: bool = False  # by its client
    is_mute: bool = False  # since then, and its node was not told
    acks: bool = False  # what it gets for its calls
    reads_slowly: bool = False  # so that what it is given may wait at its node
    library: bool = False  # it stands for all connections that a client library made for one process
    resends: bool = True  # such a library makes a send again that may have reached a node
    losses: list[float] = field(default_factory=list)  # when one of its connections was over, and it was told
    resent: set[str] = field(default_factory=set)  # what it gave to nodes twice, not knowing whether they had it
    cancels: dict[int, Cancel] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)  # answers to what was never asked
    calls: dict[int, Call] = field(default_factory=dict)
    published: list[Published] = field(default_factory=list)
    subscriptions: dict[str, float] = field(default_factory=dict)  # when each topic's was acked
    topics: dict[int, str] = field(default_factory=dict)  # by the id of the subscription
    taken: list[tuple[float, bytes]] = field(default_factory=list)  # nothing, when there was more than the kernel took
    full: list[Span] = field(default_factory=list)  # when the kernel took no more for it
    given: list[Given] = field(default_factory=list)
    came: int | None = None  # how many of `given` came, if its kernel took more than that when nothing passed any more

    def depends_on(self, trouble: Trouble) -> bool:
        """Return whether it may end by some trouble: not if that is another node's, or another worker's."""
        is_elsewhere = self.node and trouble.node and self.node != trouble.node
        is_anothers = None not in (self.worker, trouble.worker) and self.worker != trouble.worker
        return not (is_elsewhere or is_anothers)


class Stall(NamedTuple):
    """A time in which a process would have run for so many seconds, and the machine did something else."""

    since: float
    until: float
    seconds: float


@dataclass
class Stream:
    """A subscription of a client library: its connections, one after the other, and what its program got of it."""

    client: str
    connections: list[Connection]
    stops: list[Trouble]
    got: list[str] = field(default_factory=list)
    reads_slowly: bool = False
    gaps: int = 0  # times that it was told that something may be missing
    ended_at: float = NEVER_S  # when its program read no more


@dataclass
class History:
    """What there is to judge, and what troubled the cluster."""

    connections: list[Connection]
    nodes: int
    troubles: list[Trouble]
    streams: list[Stream] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.resent = {value for connection in self.connections for value in connection.resent}
        self.takers: dict[str, list[Given]] = defaultdict(list)  # of each value, in the order in which they had it
        for connection in self.connections:
            for given in connection.given:
                self.takers[given.value].append(given)
        for takers in self.takers.values():
            takers.sort(key=lambda given: given.at)
        pairs = itertools.permutations(self.troubles, 2)
        both = [
            Trouble(
                kind,
                a.node if a.node == b.node else "",
                (min if kind in SINCE_THE_FIRST else max)(a.since, b.since),
                (max if kind in UNTIL_THE_LAST else min)(a.until, b.until),
            )
            for a, b in pairs
            if (kind := self._both(a, b)) is not None and a.touches(b.since - IN_A_STEP_S, b.until)
        ]
        self._troubles = sorted([*self.troubles, *both], key=lambda trouble: trouble.since)

    @staticmethod
    def _both(a: Trouble, b: Trouble) -> str | None:
        """Return the kind of trouble that two are at once, or one right after the other."""
        match a.kind, b.kind:
            case "reload", "reload" if a.node < b.node:
                return TWO_RELOADS
            case "stop", "kill" if a.node == b.node and a.since <= b.since:
                return KILLED_STANDING
            case "kill", "kill" if a.node == b.node and a.worker != b.worker:
                return TWO_KILLS
            case "kill", "stop" if a.node == b.node:
                return HEARD_LATE
            case "stop" | "part", "link reset" | "link half open" | "death" if a.since <= b.since:
                return LOST_UNHEARD
            case "part", "kill" if a.since <= b.since:
                return DIED_UNHEARD
            case "leave", "stop":
                return ENDS_UNHEARD
            case "leave" | "reload", "part" if b.until - b.since >= UNDECIDED_S:
                return ENDS_UNHEARD
            case "reload", "stop" | "suspend" if a.node == b.node and b.until - b.since >= GIVEN_UP_S:
                return STOPPED_IN_A_RELOAD
            case "reload", "relay stopped" if a.node == b.node and b.until - b.since >= GIVEN_UP_S:
                return RELAY_STOPPED_IN_A_RELOAD
        return None

    def calls(self) -> Iterator[Call]:
        """Yield all calls."""
        for connection in self.connections:
            yield from connection.calls.values()

    def sends(self) -> Iterator[tuple[Call, list[Given]]]:
        """Yield all sends, each with those who had its value."""
        return ((call, self.takers.get(call.value, [])) for call in self.calls() if call.method == ":send!")

    def excuses(self, rule: str, begin: float, end: float, of: Connection | None = None) -> bool:
        """Return whether a rule need not hold of what went from `begin` to `end`, because of trouble.

        If it is what happened to one connection, then that is trouble of its own node and worker.
        """
        return any(of is None or of.depends_on(each) for each in self.excusing(rule, begin, end))

    def excusing(self, rule: str, begin: float, end: float) -> Iterator[Trouble]:
        """Yield the trouble that excuses from a rule what went from `begin` to `end`."""
        excuses = EXCUSES[rule]
        for each in self._troubles:
            excuse = excuses.get(each.kind)
            if excuse is not None and each.touches(begin - excuse.after_s, end + excuse.before_s):
                yield each

    def stalled_s(self, begin: float, end: float) -> float:
        """Return the seconds that the machine kept anybody waiting between two times."""
        return sum(each.seconds for each in self.stalls if each.since <= end and each.until >= begin)

    def quiet_s(self, rule: str, begin: float, end: float) -> float:
        """Return the seconds of the longest time in between in which no trouble excused from a rule."""
        longest, since = 0.0, begin
        for each in self._troubles:
            if (excuse := EXCUSES[rule].get(each.kind)) is not None:
                longest = max(longest, min(each.since - excuse.before_s, end) - since)
                since = max(since, each.until + excuse.after_s)
        return max(longest, end - since)


def answer_of(result: Any) -> str:
    """Return what an answer says, in words: an error is its code."""
    if result is True:
        return TRUE
    if isinstance(result, msgpack.ExtType):
        return TIMED_OUT if result.code == wire.TIMEOUT_TYPE else str(msgpack.unpackb(result.data)[0])
    return VALUE


def value_of(result: Any) -> str:
    """Return a value that a client was given, in the words of who gave it: bytes are what was published as such."""
    return result.decode() if isinstance(result, bytes) else str(result)


def full(taken: list[tuple[float, bytes]], until: float) -> Iterator[Span]:
    """Yield when the kernel took no more, so that what was to follow had to wait, at the latest until then."""
    since = NEVER_S
    for (at, piece), (_, following) in itertools.pairwise([*taken, (until, b"the end")]):
        if not piece:
            since = min(since, at)
        elif following and since < NEVER_S:
            yield since, at
            since = NEVER_S
    if since < NEVER_S:
        yield since, until


def pieces(taken: list[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Yield the frames that the kernel took, without their lengths, each with the time at which it had all of it."""
    data = b""
    for at, piece in taken:
        data += piece
        while len(data) >= 2 and len(data) >= (end := 2 + int.from_bytes(data[:2], "big")):
            yield at, data[2:end]
            data = data[end:]
