"""A run as data: the cluster, who says what and when, and what happens to whom.

All of it is made from a seed before anything runs, so parts can be left out while the rest stays as it is, and a plan
can be kept where a change of the product would change what comes of its seed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

from workers.engine.points import POINTS

WORKERS: Final = (2, 3, 4)
"""Of each node: with two there is nobody else who hears of a worker that is replaced, and of its successor."""

CALLERS: Final = 28
PROGRAMS: Final = 6
PAIRS: Final = 2
PUBSUBS: Final = 4
BROKERS: Final = 2
"""Clients: those that know the wire and nothing else, and those that use our library. The two of a pair have topics of
their own, one after the other, so that their connections move to the worker of each."""

PHASES: Final = 12
"""Topics of a pair."""

PHASE: Final = 10
"""Words of each of the two on one, on average."""

DRAWN_AFTER: Final = (1, 1, 4, 16)
"""Calls that go to another worker after which a connection does, too."""

CALLS: Final = 3000
PUBLISHED: Final = 600
FAULTS: Final = 10
CUTS: Final = 20
"""How often a client loses its connection."""

KINDS: Final = (
    "kill", "kill in a step", "kill at a point", "stop at a point", "reload", "stop", "suspend", "part", "part one way",
    "link reset", "link half open", "no descriptors", "slow client",
    "join", "leave", "death", "agent kill", "agent stop", "supervisor stop", "wrong directory",
)  # fmt: skip
"""What a fault may be. A run has some of them: two kinds at once would excuse much of what one must not do."""

CUTS_OF: Final = ("cut", "cut", "client reset", "client half open")
"""How they do."""

TOKENS: Final = ("even", "uneven", "nearly all to one")

CROWDED: Final = (0.001, 0.001, 0.03)
"""How often a process has to wait for its processor, of all times that it looks at the clock."""

WAYS: Final = ("join", "dns", "consul", "silk")
"""How nodes may find each other."""

SILK: Final = 0.3
"""Part of the runs in which they do by Silk."""

STRAYS: Final = (0.0, 0.0, 0.1)
"""How often what is said by it goes astray."""

NODE: Final = "node"
"""What the names of nodes begin with; the rest is a number."""

IDLE_S: Final = (60.0, 0.2, 0.01)
"""Seconds after which nodes end a link that nobody uses: never, within seconds, or again and again."""

MAX_LINKS: Final = (2048, 2048, 1)
"""How many workers of other nodes may be before some are reached through siblings: more than there are, or one."""

LATECOMERS: Final = 2
"""Nodes that may join."""

STOPS_S: Final = (0.02, 0.2, 2.0)
"""Seconds for which a process is stopped or two nodes are parted, at most."""

SPEAK_S: Final = 10.0
"""Seconds in which clients speak."""

TIMEOUTS_MS: Final = (0, 1, 5, 20, 50, 200, 1000, 5000)
ROOM: Final = 212_992
"""Bytes that a kernel takes for a process before it reads them, as a rule."""

CLIENT_ROOMS: Final = (ROOM, ROOM, 1000, 200)
"""For a client."""

ROOMS: Final = (ROOM, ROOM, 16384)
"""And between workers, or nodes."""

PUBLISH: Final = "publish"


class Word(NamedTuple):
    """One thing that a client says."""

    method: str
    topic: str
    timeout_ms: int = 0
    cancels: bool = False
    """Whether it takes back one of its calls then."""


class Spurt(NamedTuple):
    """What a client has to say from a time on, counted from when clients begin to speak."""

    at: float
    words: tuple[Word, ...]


@dataclass(frozen=True)
class ClientPlan:
    """One client."""

    kind: str
    number: int
    pause_s: float
    """Seconds between two times that it speaks, on average."""
    depth: int
    """Calls that it has under way at most."""
    room: int
    """Bytes that its kernel takes for it before it reads them."""
    subscribes: bool
    acks: bool
    spurts: tuple[Spurt, ...]

    @property
    def name(self) -> str:
        """What it is called in what is printed."""
        return f"{self.kind}{self.number}"

    def __str__(self) -> str:
        words = [
            f"at {at:.6f} s {', '.join(f'{word.method} {word.topic} {word.timeout_ms}' for word in words)}"
            for at, words in self.spurts
        ]
        traits = "subscribes, " * self.subscribes + "acks, " * self.acks
        return f"{self.name} ({traits}{self.depth} at once, room for {self.room} bytes): {'; '.join(words)}"


@dataclass(frozen=True)
class Fault:
    """What happens to one of them, so many seconds after clients begin to speak."""

    at: float
    kind: str
    whom: str
    nth: int = 0
    """Which of its workers, or of the other nodes; or after how many writes."""
    seconds: float = 0.0
    point: str = ""
    """Where in the program it happens, to the first who gets there then."""

    def __str__(self) -> str:
        where = f", where {self.point}" * bool(self.point)
        return f"at {self.at:.6f} s: {self.kind} ({self.whom}, {self.nth}, {self.seconds:.3f} s{where})"


@dataclass(frozen=True)
class Conditions:
    """What sockets are like throughout a run."""

    pieces: float = 0.01
    """How often a stream is read or written only in part, of all times."""
    refusals: float = 0.0
    """How often there turns out to be nothing to read, or no room to write."""
    room: int = ROOM
    """Bytes that a kernel takes between workers, and between nodes."""
    crowded: float = CROWDED[0]
    """One of CROWDED."""
    late_s: float = 0.0
    """Seconds that it takes at most until a descriptor that a supervisor passes on is there."""
    tokens: str = "even"
    """How they are spread: one of TOKENS."""
    link_idle_s: float = 60.0
    """Seconds after which nodes end a link that nobody uses: one of IDLE_S."""
    max_links: int = 2048
    """Workers of other nodes above which some are reached through siblings: one of MAX_LINKS."""
    drawn_after: int = 0
    """Calls for another worker of its node after which a connection moves there: 0 is as ever, one of DRAWN_AFTER."""
    older: float = 0.0
    """How often a node that begins is of a version which shares topics among workers by tokens."""
    strays: float = 0.0
    """How often a message by which nodes find each other is lost, comes twice, or is overtaken by later ones."""


FAIR: Final = Conditions()


@dataclass(frozen=True)
class Plan:
    """What a run is made from."""

    seed: int
    """Of the luck that no plan has: how long things take, and what comes first."""
    nodes: int
    workers: int
    """Of each node."""
    topics: int
    """To which there are subscriptions. Calls may go to others: a send that a subscriber gets waits for nobody."""
    clients: tuple[ClientPlan, ...]
    faults: tuple[Fault, ...]
    conditions: Conditions = FAIR
    way: str = "join"
    """How its nodes find each other: one of WAYS."""

    def words(self) -> int:
        """Return how much is said."""
        return sum(len(spurt.words) for client in self.clients for spurt in client.spurts)

    def __str__(self) -> str:
        size = f"seed {self.seed}: {self.nodes} nodes, {self.workers} workers each, {self.topics} topics, {self.way}"
        return "\n".join([size, str(self.conditions), *map(str, self.clients), *map(str, self.faults)])

    def text(self) -> str:
        """Return it as one line."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @staticmethod
    def of(text: str) -> Plan:
        """Return what text() has written."""
        given: dict[str, Any] = json.loads(text)
        given["faults"] = tuple(Fault(**each) for each in given["faults"])
        given["clients"] = tuple(ClientPlan(**{**each, "spurts": _spurts_of(each)}) for each in given["clients"])
        given["conditions"] = Conditions(**given["conditions"])
        return Plan(**given)


def _spurts_of(client: dict[str, Any]) -> tuple[Spurt, ...]:
    return tuple(Spurt(at, tuple(Word(*word) for word in words)) for at, words in client["spurts"])


def plan(seed: int, kinds: Sequence[str] = ()) -> Plan:
    """Return the plan of one seed, in which only faults of some kinds happen if these are named."""
    luck = Random(seed)
    nodes, way = luck.choice([1, 2, 3]), luck.choice([way for way in WAYS if way != "silk"])
    workers = luck.choice(WORKERS[: 4 - nodes])
    count = luck.choice([1, 4, 20])
    apart = luck.choice([0, (count + 1) // 2, count])
    topics, called = _topics(0, count), _topics(apart, count)
    some = luck.sample(KINDS, luck.randint(1, 3))
    times = sorted(_rounded(0.1 + luck.random() * SPEAK_S) for _ in range(FAULTS))
    clients = tuple(
        _client(luck, kind, number, on, words // of, times)
        for kind, of, on, words in (
            ("caller", CALLERS, called, CALLS * CALLERS // (CALLERS + PROGRAMS)),
            ("program", PROGRAMS, called, CALLS * PROGRAMS // (CALLERS + PROGRAMS)),
            ("pubsub", PUBSUBS, topics, PUBLISHED * PUBSUBS // (PUBSUBS + BROKERS)),
            ("broker", BROKERS, topics, PUBLISHED * BROKERS // (PUBSUBS + BROKERS)),
        )
        for number in range(of)
    )
    clients += pairs(luck, PAIRS, PHASES, times)
    faults = [_fault(luck, at, luck.choice(kinds or some), nodes, clients) for at in times]
    for each in [each for each in faults if each.kind == "slow client" and luck.random() < 0.5]:
        at = _rounded(each.at + each.seconds * luck.random())
        faults.append(Fault(at, luck.choice(CUTS_OF), each.whom))  # with what it did not read
    for _ in range(CUTS):
        faults.append(Fault(_rounded(luck.random() * SPEAK_S), luck.choice(CUTS_OF), luck.choice(clients).name))
    faults += [
        Fault(_rounded(spurt.at + luck.choice([0.001, 0.01, 0.1]) * luck.random()), luck.choice(CUTS_OF), client.name)
        for client in clients
        if client.kind in ("program", "broker")
        for spurt in luck.sample(client.spurts, 1)
    ]
    faults.sort(key=lambda fault: fault.at)
    conditions = _conditions(luck)
    if luck.random() < SILK:
        way, conditions = "silk", dataclasses.replace(conditions, strays=luck.choice(STRAYS))
    conditions = dataclasses.replace(conditions, link_idle_s=luck.choice(IDLE_S), max_links=luck.choice(MAX_LINKS))
    return Plan(seed, nodes, workers, len(topics), clients, tuple(faults), conditions, way)


def _conditions(luck: Random) -> Conditions:
    return Conditions(
        pieces=luck.choice([0.01, 0.01, 0.3]),
        refusals=luck.choice([0.0, 0.0, 0.03]),
        room=luck.choice(ROOMS),
        crowded=luck.choice(CROWDED),
        late_s=luck.choice([0.0, 0.0, 0.02]),
        tokens=luck.choice(TOKENS),
        drawn_after=luck.choice(DRAWN_AFTER),
        older=luck.choice([0.0, 0.0, 0.5, 1.0]),
    )


def tokens(luck: Random, how: str, count: int) -> tuple[int, ...]:
    """Return the tokens of one node, spread as one of TOKENS says."""
    if how == "even":
        found = [luck.getrandbits(64) for _ in range(count)]
    elif how == "uneven":
        found = [int(luck.random() ** 4 * 2**64) for _ in range(count)]
    else:
        found = [2**63 + luck.getrandbits(32) for _ in range(count)]
    return tuple(sorted(token - 2**63 for token in found))


def _topics(first: int, count: int) -> list[str]:
    return [f"topic{number}" for number in range(first, first + count)]


def _rounded(seconds: float) -> float:
    return round(seconds, 6)


def _client(luck: Random, kind: str, number: int, topics: list[str], count: int, faults: list[float]) -> ClientPlan:
    is_caller = kind in ("caller", "program")
    sends = luck.choice([0.1, 0.5, 0.5, 0.9]) if is_caller else 0.0
    return ClientPlan(
        kind,
        number,
        pause_s=luck.choice([0.0, 0.001, 0.01, 0.05]),
        depth=luck.choice([1, 1, 4, 16, 64]),
        room=luck.choice(CLIENT_ROOMS),
        subscribes=luck.random() < (0.1 if is_caller else 0.6),
        acks=is_caller and luck.random() < 0.2,
        spurts=tuple(
            Spurt(
                at, tuple(_word(luck, topics, sends) if is_caller else Word(PUBLISH, luck.choice(topics)) for _ in some)
            )
            for at, some in _spurts(luck, count, faults)
        ),
    )


def pairs(luck: Random, count: int, phases: int, faults: list[float]) -> tuple[ClientPlan, ...]:
    """Return so many pairs of clients, each of which have that many topics."""
    found: list[ClientPlan] = []
    for pair in range(count):
        times = [_time(luck, faults) for _ in range(phases)]
        spurts: tuple[list[Spurt], list[Spurt]] = [], []
        for number, at in enumerate(sorted(times)):
            topic = f"pair{pair}.{number}"
            methods = luck.choice([(":send!", ":take!"), (":send!", ":recv!"), (":take!", ":send!")])
            for said, method in zip(spurts, methods, strict=True):
                words = luck.randint(1, 2 * PHASE - 1)
                said.append(Spurt(at, tuple(_pair_word(luck, method, topic) for _ in range(words))))
        found += [
            ClientPlan(
                "pair",
                2 * pair + side,
                pause_s=luck.choice([0.0, 0.0, 0.001]),
                depth=luck.choice([1, 4, 16, 64]),
                room=luck.choice([ROOM, ROOM, ROOM, 1000]),
                subscribes=luck.random() < 0.2,
                acks=luck.random() < 0.2,
                spurts=tuple(said),
            )
            for side, said in enumerate(spurts)
        ]
    return tuple(found)


def _pair_word(luck: Random, method: str, topic: str) -> Word:
    return Word(method, topic, luck.choice(TIMEOUTS_MS[2:]), luck.random() < 0.05)


def _time(luck: Random, faults: list[float]) -> float:
    """Return when something is said: most of the times at a fault."""
    at = luck.random() * SPEAK_S
    if luck.random() < 0.7:
        at = max(0.0, luck.choice(faults) - luck.choice([0.0005, 0.005, 0.05]) * luck.random())
    return _rounded(at)


def _spurts(luck: Random, count: int, faults: list[float]) -> list[tuple[float, range]]:
    """Return when a client says how much: most of the times at a fault."""
    parts = luck.randint(1, 8)
    found = [(_time(luck, faults), range(count // parts)) for _ in range(parts)]
    return sorted(found, key=lambda each: each[0])


def _word(luck: Random, topics: Sequence[str], sends: float) -> Word:
    method = ":send!" if luck.random() < sends else ":recv!" if luck.random() < 0.7 else ":take!"
    return Word(method, luck.choice(topics), luck.choice(TIMEOUTS_MS), luck.random() < 0.05)


def _fault(luck: Random, at: float, kind: str, nodes: int, clients: Sequence[ClientPlan]) -> Fault:
    seconds = _rounded(luck.random() * luck.choice(STOPS_S))
    number = nodes + luck.randrange(LATECOMERS) if kind == "join" else luck.randrange(nodes)
    whom = luck.choice(clients).name if kind == "slow client" else f"{NODE}{number}"
    point = luck.choice(POINTS) if kind.endswith("at a point") else ""
    return Fault(at, kind, whom, luck.randrange(12), seconds, point)
