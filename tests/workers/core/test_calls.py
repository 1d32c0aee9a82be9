"""The core against today's worker: clients say the same to both, and read and break alike: then they hear the same."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable
from typing import Final

import pytest

from skywalker.access import token
from skywalker.access.access import Access
from skywalker.wire import junction as wire
from skywalker.wire import pubsub, values
from skywalker.wire.frames import split
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.test_frames import lengthened, mutated
from tests.workers.core.worlds import LIMITS, New, Old, Settings, Wire, own_node
from workers.engine.machine import Machine
from workers.stats import metrics

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "200"))
STEPS: Final = 60

IDS: Final = [values.pack(id) for id in (0, 1, 2, 3, 300, "a long one of more than twelve bytes"[:30])]
TOPICS: Final = [
    values.pack(topic) for topic in ("a", "a", "a", "b", 200, "a name of more than sixteen bytes", ["a", {"b": 1000}])
]
GROUPS: Final = [values.pack(group) for group in ("g", "h", 70_000)]
WORDS: Final = [wire.CLOJURE_TIMED_OUT, wire.NIL, values.pack("late")]

COMPARED: Final = (
    metrics.CALLS, metrics.ROUTED, metrics.WAIT, metrics.HAND_OFF, metrics.WAITING, metrics.RECEIVED, metrics.SENT,
    metrics.REFUSED, metrics.LIMITED, metrics.OPENED, metrics.CLOSED, metrics.CONNECTIONS,
)  # fmt: skip

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


def settings_of(luck: random.Random) -> Settings:
    """Half of the histories are of a node as it comes, all others of one that is careful."""
    if luck.random() < 0.5:
        return Settings()
    limits = dataclasses.replace(LIMITS, max_rate=luck.choice((0, 0, 20, 100)), max_strangers=luck.choice((2, 9)))
    return Settings(limits, luck.choice((None, ACCESS, STRICT)), luck.random() < 0.2)


class History:
    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        settings, node = settings_of(self.luck), own_node(Machine())
        self.settings = settings
        self.has_opened = not settings.opens_late
        self.drains = False
        self.old, self.new = Old(settings, node, seed), New(seed, settings, node)
        self.share_of_pubsub = self.luck.choice((0.0, 0.0, 0.3, 0.6))
        self.pubsub: set[int] = set()  # those of its clients
        self.wills: list[bytes] = []
        self.fds = 10
        self.kept: dict[int, bytes] = {}  # what a client has begun to say
        self.log: list[str] = []
        for _ in range(3):
            self.connect()

    def open_fds(self) -> list[int]:
        return [fd for fd, wire_ in self.old.world.wires.items() if not wire_.is_closed and not wire_.ended]

    def wires(self, fd: int) -> tuple[Wire, Wire]:
        return self.old.world.wires[fd], self.new.world.wires[fd]

    # What clients do.

    def connect(self) -> None:
        if len(self.open_fds()) >= 6:
            return
        self.fds += 1
        luck = self.luck
        sealed, host, pubsub = luck.random() < 0.2, luck.choice(("", "10.0.0.1")), luck.random() < self.share_of_pubsub
        if pubsub:
            self.pubsub.add(self.fds)
        hello = self.framed(*self.hello()) if luck.random() < 0.7 and not pubsub else b""
        for side in (self.old, self.new):
            wire_ = side.world.wires[self.fds] = Wire(self.fds)
            side.connect(self.fds, host, sealed=sealed, pubsub=pubsub)
            wire_.coming += hello
        self.log.append(f"connect {self.fds} {host=} {sealed=} {pubsub=} {hello!r}")

    def hello(self) -> list[bytes]:
        luck = self.luck
        options: dict[object, object] = {}
        if luck.random() < 0.4:
            options["ack"] = luck.choice((True, True, True, False, 7))
        if luck.random() < 0.2:
            options["name"] = luck.choice(("me", "x" * 300, "\n", 5))
        if luck.random() < 0.2:
            options["ring"] = luck.random() < 0.9
        if self.settings.access is not None and luck.random() < 0.8:
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
        said = self.kept.pop(fd, b"") + b"".join(
            self.some_message() if fd in self.pubsub else self.some_call()
            for _ in range(self.luck.choice((1, 1, 2, 5, 5, 80)))
        )
        if self.luck.random() < 0.15:
            at = self.luck.randrange(len(said))
            said, self.kept[fd] = said[:at], said[at:]
        for wire_ in self.wires(fd):
            wire_.coming += said
        self.log.append(f"{fd} says {len(said)} bytes, {said[:3000].hex()}")

    def speak_tls(self, fd: int) -> None:
        if fd in self.kept:
            return
        for wire_ in self.wires(fd):
            wire_.coming += b"\x16\x03\x01\x7f\xff and so on"
        self.log.append(f"{fd} speaks TLS")

    def open(self) -> None:
        self.has_opened = True
        self.old.open()
        self.new.open()
        self.log.append("open")

    def drain(self) -> None:
        self.drains = True
        self.old.drain()
        self.new.drain()
        self.log.append("drain")

    def read(self, fd: int) -> None:
        room = self.luck.choice((0, 1, 100, 3_000, 20_000, 60_000, 10_000_000))
        for wire_ in self.wires(fd):
            wire_.room = room
        self.log.append(f"{fd} has room for {room}")

    def leave(self, fd: int) -> None:
        for wire_ in self.wires(fd):
            wire_.ended = True
        self.log.append(f"{fd} leaves")

    def pass_time(self, fd: int) -> None:
        seconds = self.luck.choice((0.001, 0.02, 0.02, 0.05, 0.1, 0.5, 6.0, 31.0))
        self.old.world.now += seconds
        self.new.world.now += seconds
        self.log.append(f"{seconds} s go by")

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

    def step(self) -> None:
        luck = self.luck
        self.act_as_clients()
        if luck.random() < 0.002 and self.open_fds():
            self.speak_tls(luck.choice(self.open_fds()))
        if luck.random() < 0.4:
            self.pass_time(0)
        if not self.has_opened and luck.random() < 0.1:
            self.open()
        if self.has_opened and not self.drains and luck.random() < 0.003:
            self.drain()
        self.old.settle()
        self.new.settle()
        self.compare()

    def compare(self) -> None:
        for fd, old in self.old.world.wires.items():
            new = self.new.world.wires[fd]
            assert new.taken == old.taken, f"{fd} is told something else"
            assert (new.is_closed, new.is_shut) == (old.is_closed, old.is_shut), fd
            old.taken.clear()
            new.taken.clear()
        assert self.new.held == self.old.held
        assert sorted(self.new.counters.recent.closed) == sorted(self.old.counters.recent.closed)
        for metric in COMPARED:
            cells = slice(metric.at, metric.end)
            assert self.new.memory[cells].tolist() == self.old.memory[cells].tolist(), metric.name

    def read_all(self) -> None:
        for fd in self.old.world.wires:
            for wire_ in self.wires(fd):
                wire_.room = 10_000_000
        self.pass_time(0)
        self.old.settle()
        self.new.settle()
        self.compare()

    def end(self) -> None:
        """All leave: then nothing is held."""
        if not self.has_opened:
            self.open()
        if self.luck.random() < 0.3:
            self.read_all()
            self.old.leave()
            self.new.leave()
            for fd in self.old.world.wires:
                for wire_ in self.wires(fd):  # who has many calls is told of one before the other
                    if fd in self.pubsub:
                        continue
                    frames, rest = split(bytes(wire_.taken))
                    wire_.taken = bytearray(b"".join(sorted(b"".join(frame) for frame in frames)) + rest)
            self.compare()
        for fd in self.open_fds():
            self.leave(fd)
        for _ in range(400):
            self.read_all()
            if not self.new.core.holds["connections"] and not self.new.turn.alarms:  # there are others than the core's
                break
        assert self.new.held == (0, 0)
        holds = self.new.core.holds
        assert {name: number for name, number in holds.items() if number} == {}
        self.new.core.shut()


@pytest.mark.parametrize("part", range(PARTS))
def test_clients_hear_the_same(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = History(seed)
        live(history, seed, STEPS, history.log)
