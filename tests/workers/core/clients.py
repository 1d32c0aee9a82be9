"""Clients of workers in memory that say anything, good, odd and spoiled, in pieces, read as they like, and leave."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from skywalker.access import token
from skywalker.access.access import Access
from skywalker.wire import junction as wire
from skywalker.wire import pubsub, values
from tests.workers.core.claims import Calls, Claims, Publications, Talk
from tests.workers.core.test_frames import lengthened, mutated
from tests.workers.core.worlds import MemoryWorker, Wire
from workers.doors.junction.client import JunctionClient
from workers.stats import metrics
from workers.stats.close_reasons import Close

IDS: Final = [values.pack(id) for id in (0, 1, 2, 3, 300, "a long one of more than twelve bytes"[:30])]
TOPICS: Final = [
    values.pack(topic) for topic in ("a", "a", "a", "b", 200, "a name of more than sixteen bytes", ["a", {"b": 1000}])
]
GROUPS: Final = [values.pack(group) for group in ("g", "h", 70_000)]
WORDS: Final = [wire.CLOJURE_TIMED_OUT, wire.NIL, values.pack("late")]

TIMES: Final = (0.001, 0.02, 0.02, 0.05, 0.1, 0.5, 6.0, 31.0)

TOKENS: Final = ("one", "other", "third", "no such token")
ACCESS: Final = Access.parse(
    {
        "one": {"token": token.hash_of("one"), "send": ["*"], "recv": ["*"], "subscribe": ["a"], "in_flight": 9},
        "other": {"token": token.hash_of("other"), "send": ["a*"], "recv": ["b", "a"], "subscribe": ["*"], "rate": 30},
        "third": {"token": token.hash_of("third"), "send": ["*"], "connections": 2},
        "near": {"network": "10.0.0.0/8", "send": ["*"], "recv": ["*"], "publish": ["a*"], "subscribe": ["a", "b"]},
        "anyone": {"recv": ["a"], "send": ["a", "b"], "publish": ["a"], "subscribe": ["a"], "rate": 40},
    },
    "here",
)
STRICT: Final = Access(ACCESS.principals[:4])
"""Where nobody is anyone."""


class Clients:
    """Those of one history, with what is so of all that they are told."""

    most = 6
    knows_tokens = False

    def __init__(self, luck: random.Random, share_of_pubsub: float) -> None:
        self.luck = luck
        self.share_of_pubsub = share_of_pubsub
        self.claims = Claims()
        self.talks: dict[int, Talk] = {}
        self.wires: dict[int, Wire] = {}
        self.homes: dict[int, MemoryWorker] = {}
        self.wills: list[bytes] = []
        self.fds = 10
        self.kept: dict[int, bytes] = {}  # what a client has begun to say
        self.log: list[str] = []

    # What there is of workers.

    def some_worker(self) -> MemoryWorker:
        """Return one to which somebody comes."""
        raise NotImplementedError

    def pass_time(self, seconds: float) -> None:
        raise NotImplementedError

    def settle_workers(self) -> None:
        """Have all of them do what there is to do."""
        raise NotImplementedError

    def open_fds(self) -> list[int]:
        return [fd for fd, wire_ in self.wires.items() if not wire_.is_closed and not wire_.ended]

    # What clients do.

    def connect(self) -> None:
        if len(self.open_fds()) >= self.most:
            return
        self.fds += 1
        luck = self.luck
        sealed, host, pubsub = luck.random() < 0.2, luck.choice(("", "10.0.0.1")), luck.random() < self.share_of_pubsub
        hello = self.framed(*self.hello()) if luck.random() < 0.7 and not pubsub else b""
        worker = self.homes[self.fds] = self.some_worker()
        self.wires[self.fds] = worker.world.wires[self.fds] = Wire(self.fds)
        self.talks[self.fds] = Publications(self.claims) if pubsub else Calls(self.claims)
        worker.connect(self.fds, host, sealed=sealed, pubsub=pubsub)
        self.write(self.fds, hello)
        self.log.append(f"connect {self.fds} {host=} {sealed=} {pubsub=} {hello!r}")

    def write(self, fd: int, data: bytes) -> None:
        self.wires[fd].coming += data
        self.talks[fd].says(data)

    def hello(self) -> list[bytes]:
        luck = self.luck
        options: dict[object, object] = {}
        if luck.random() < 0.4:
            options["ack"] = luck.choice((True, True, True, False, 7))
        if luck.random() < 0.2:
            options["name"] = luck.choice(("me", "x" * 300, "\n", 5))
        if luck.random() < 0.2:
            options["ring"] = luck.random() < 0.9
        if self.knows_tokens and luck.random() < 0.8:
            options["token"] = luck.choice(TOKENS[: 3 + (luck.random() < 0.2)])
        return [wire.HELLO, values.pack(97), values.pack(options)]

    def framed(self, *elements: bytes) -> bytes:
        body = bytes((0x90 | len(elements),)) + b"".join(elements)
        return len(body).to_bytes(2, "big") + body

    def some_timeout(self) -> bytes:
        odd = (1.5, -1, 2**40, "x", float("nan"), 0.0)
        ms = self.luck.choice((0, 5, 5, 60, 200, 1000, 60_000, 60_000, 60_000))
        return values.pack(ms if self.luck.random() < 0.95 else self.luck.choice(odd))

    def some_value(self) -> bytes:
        size = self.luck.choice((0, 3, 16, 16, 200, 5_000, 5_000, 29_970, 40_000))
        return values.pack(self.luck.randbytes(size))

    def some_call(self) -> bytes:
        luck = self.luck
        id, topic = luck.choice(IDS), luck.choice(TOPICS)
        if luck.random() < 0.03:
            id, topic = luck.choice(
                ((values.pack("x" * 40), topic), (id, values.pack("t" * 5_000)), (id, lengthened(luck, topic)))
            )
        first = [luck.choice(WORDS)] if luck.random() < 0.3 else []
        match luck.randrange(14):
            case 0 | 1 | 2 | 3:
                elements = [wire.SEND, id, self.some_timeout(), *first, topic, self.some_value()]
            case 4 | 5 | 6:
                elements = [wire.RECV, id, self.some_timeout(), *first, topic]
            case 7 | 8:
                elements = [wire.TAKE, id, self.some_timeout(), topic, luck.choice(GROUPS)]
            case 9:
                elements = [wire.CANCEL, values.pack(99), luck.choice((id, id, id, *self.wills[-2:]))]
            case 10:
                elements = [wire.ACK, id]
            case 11:
                elements = [wire.SUBSCRIBE, id, topic]
            case 12:
                elements = [wire.UNSUBSCRIBE, values.pack(98), id]
            case _:
                elements = self.some_other(id, topic)
        body = bytes((0x90 | len(elements),)) + b"".join(elements)
        if luck.random() < 0.03:
            body = self.spoiled(body)
        return len(body).to_bytes(2, "big") + body

    def some_other(self, id: bytes, topic: bytes) -> list[bytes]:
        match self.luck.randrange(12):
            case 0 | 1:
                # Of its own id, or that of another call would say which of two is published first.
                self.wills.append(values.pack(1_000_000 + len(self.wills)))
                return [wire.WILL, self.wills[-1], self.some_timeout(), topic, self.some_value()]
            case 2:
                return [wire.TOKENS, id]
            case 3:
                return [wire.TOPIC, id, topic]
            case 4:
                return [wire.NODES, id]
            case 5 | 6:
                return self.hello()
            case 7:
                return [wire.PING, wire.NIL, wire.TRUE]
            case 8:
                return [self.luck.choice((wire.JOIN, wire.CHALLENGE, wire.PROOF, wire.PEER)), id, values.pack({"a": 1})]
            case 9:
                name = self.luck.choice((wire.CANCEL, wire.ACK, wire.SEND, wire.RECV, wire.TAKE))
                return [lengthened(self.luck, name), id, self.luck.choice(IDS)]
        return [wire.PING, id]

    def spoiled(self, body: bytes) -> bytes:
        # Behind the name of the method, or it might be one that no test asks for.
        if len(body) > 1000 or self.luck.random() < 0.3:
            return self.luck.choice(
                (body[:-1], body + b"\xc0", b"\x93\xa4:hi!" + IDS[0] * 2, b"\x91\xa6:recv!", b"\xc0", b"")
            )
        at = 2 + (body[1] & 31)
        return body[:at] + mutated(self.luck, body[at:])

    def some_message(self) -> bytes:
        luck = self.luck
        topic = luck.choice(
            (b"a", b"a", b"a", b"b", b"a name of more than sixteen bytes", b"\xff", "\u00e9".encode(), b"x" * 200)
        )
        payload = luck.randbytes(luck.choice((0, 3, 16, 16, 255, 256, 5_000, 5_000, 65_535)))
        match luck.randrange(12):
            case 0 | 1 | 2 | 3:
                return pubsub.publish(topic, payload)
            case 4 | 5:
                return pubsub.publish_typed(topic, bytes((luck.randrange(256), luck.choice((0, 0, 2, 254)))), payload)
            case 6:
                squeezed = pubsub.deflate(payload[:40_000])
                return pubsub.publish_typed(topic, b"\x07\x01", squeezed if luck.random() < 0.95 else squeezed[:-1])
            case 7:
                return pubsub.subscribe(topic)
            case 8:
                return pubsub.subscribe(topic, typed=True)
            case 9 | 10:
                return pubsub.unsubscribe(topic)
        if luck.random() < 0.05:
            return luck.choice((b"\x04", b"\x00", b"\x16\x03\x01", b"\x07ab"))
        return pubsub.publish(b"a", b"x")

    def say(self, fd: int) -> None:
        speaks = self.some_message if isinstance(self.talks[fd], Publications) else self.some_call
        said = self.kept.pop(fd, b"") + b"".join(speaks() for _ in range(self.luck.choice((1, 1, 2, 5, 5, 80))))
        if self.luck.random() < 0.15:
            at = self.luck.randrange(len(said))
            said, self.kept[fd] = said[:at], said[at:]
        self.write(fd, said)
        self.log.append(f"{fd} says {len(said)} bytes, {said[:3000].hex()}")

    def read(self, fd: int) -> None:
        self.wires[fd].room = self.luck.choice((0, 1, 100, 3_000, 20_000, 60_000, 10_000_000))
        self.log.append(f"{fd} has room for {self.wires[fd].room}")

    def leave(self, fd: int) -> None:
        self.wires[fd].ended = True
        self.log.append(f"{fd} leaves")

    def act_as_clients(self) -> None:
        luck = self.luck
        acts: list[Callable[[int], None]] = [self.say, self.say, self.say, self.read]
        for _ in range(luck.choice((1, 1, 2, 3))):
            fds = self.open_fds()
            if not fds or luck.random() < 0.05:
                self.connect()
            else:
                luck.choice(acts)(luck.choice(fds))
        if luck.random() < 0.05 and self.open_fds():
            self.leave(luck.choice(self.open_fds()))

    # What comes of it.

    def settle(self) -> None:
        self.settle_workers()
        self.look()

    def look(self) -> None:
        """See whether all is as it should be."""
        for fd, wire_ in self.wires.items():
            self.talks[fd].is_gone = wire_.ended or wire_.is_shut or wire_.is_closed
        for fd, wire_ in self.wires.items():
            self.talks[fd].hears(bytes(wire_.taken))
            wire_.taken.clear()
        for talk in self.talks.values():
            talk.settled()

    def read_all(self) -> None:
        for wire_ in self.wires.values():
            wire_.room = 10_000_000
        self.pass_time(self.luck.choice(TIMES))
        self.settle()

    def wait_for_all(self) -> None:
        """Those who stay and read are answered, or closed."""
        for fd in self.open_fds():
            self.write(fd, self.kept.pop(fd, b""))
        for _ in range(20):
            self.pass_time(5.0)
            self.read_all()
            for fd in self.open_fds():
                if isinstance(self.talks[fd], Calls):
                    self.write(fd, self.framed(wire.PING, wire.NIL, wire.TRUE))  # as it may be asked whether it lives
        for fd in self.open_fds():
            assert not self.talks[fd].unanswered(), fd


def add_up(worker: MemoryWorker, wires: list[Wire]) -> None:
    """See whether what it counts is what there is."""
    memory, core = worker.memory, worker.core
    clients = [*worker.hub.clients]
    counts = [core.counts(client.handle) for client in clients]
    subscriptions = sum(count[1] for count in counts)
    calls = sum(count[0] for client, count in zip(clients, counts, strict=True) if client.door == JunctionClient.door)
    waiting = metrics.WAITING.by_label(memory)
    assert waiting.pop("subscription") == subscriptions
    assert sum(waiting.values()) == calls == core.held()[0]
    assert min(memory[metrics.WAITING.at : metrics.WAITING.end]) >= 0
    fds = [core.fd(client.handle) for client in clients]
    arriving = sum(core.moves(client.handle) and fd < 0 for client, fd in zip(clients, fds, strict=True))
    open_ones = [wire_ for wire_ in wires if wire_.fd in worker.world.wires and not wire_.is_closed]
    leaving = sum(wire_.fd not in fds and not wire_.mask for wire_ in open_ones)  # a link does not take them now
    assert metrics.CONNECTIONS.total(memory) == len(clients) == len(open_ones) + arriving - leaving
    assert metrics.OPENED.total(memory) == worker.let_in
    moved, closed = metrics.MOVED.by_label(memory), metrics.CLOSED.by_label(memory)
    lost = len(clients) + sum(closed.values()) + moved["out"] - (worker.let_in + moved["in"] + arriving)
    never_arrived = (
        closed[Close.LOST_ON_ITS_WAY.label] + closed[Close.SLOW_SUBSCRIBER.label]
    )  # for all that it was given
    assert 0 <= lost <= never_arrived, "each came and goes once, but for those"
    assert core.topic_count == len(core.topics(10_000))
    assert metrics.RECEIVED.total(memory) == worker.world.read + sum(wire_.read for wire_ in wires)
    assert metrics.SENT.total(memory) == worker.world.written + sum(wire_.written for wire_ in wires)


def standing(worker: MemoryWorker) -> int:
    """Return how many calls stand in the line of a topic that this worker owns."""
    censuses = [worker.core.census(topic) for _, topic in worker.core.topics(10_000)]
    return sum(each.receivers + each.senders + sum(each.takers.values()) for each in censuses)


def has_nothing(worker: MemoryWorker) -> None:
    """See whether nothing is left, once all have left."""
    assert worker.core.held() == (0, 0)
    assert {name: number for name, number in worker.core.holds.items() if number} == {}
