"""The core against today's worker: clients say the same to both, and read and break alike: then they hear the same."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Final

import pytest

from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.core.test_frames import lengthened, mutated
from tests.workers.core.worlds import New, Old, Wire
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
    metrics.REFUSED, metrics.LIMITED,
)  # fmt: skip


class History:
    def __init__(self, seed: int) -> None:
        self.luck = random.Random(seed)
        self.old, self.new = Old(), New(seed)
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
        knows_errors = self.luck.random() < 0.7
        acks = knows_errors and self.luck.random() < 0.3
        for side in (self.old, self.new):
            side.world.wires[self.fds] = Wire(self.fds)
            side.connect(self.fds, knows_errors=knows_errors, acks=acks)
        self.log.append(f"connect {self.fds} {knows_errors=} {acks=}")

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
                elements = [wire.CANCEL, values.pack(99), id]
            case 10:
                elements = [wire.ACK, id]
            case 11:
                elements = [wire.SUBSCRIBE, id, topic]
            case 12:
                elements = [wire.UNSUBSCRIBE, values.pack(98), id]
            case _:
                elements = [wire.PING, id]
        body = bytes((0x90 | len(elements),)) + b"".join(elements)
        if luck.random() < 0.03:
            body = self.spoiled(body)
        return len(body).to_bytes(2, "big") + body

    def spoiled(self, body: bytes) -> bytes:
        # Behind the name of the method, or it might be one that no test asks for.
        if len(body) > 1000 or self.luck.random() < 0.3:
            return self.luck.choice(
                (body[:-1], body + b"\xc0", b"\x93\xa4:hi!" + IDS[0] * 2, b"\x91\xa6:recv!", b"\xc0", b"")
            )
        at = 2 + (body[1] & 31)
        return body[:at] + mutated(self.luck, body[at:])

    def say(self, fd: int) -> None:
        said = self.kept.pop(fd, b"") + b"".join(self.some_call() for _ in range(self.luck.choice((1, 1, 2, 5, 5, 80))))
        if self.luck.random() < 0.15:
            at = self.luck.randrange(len(said))
            said, self.kept[fd] = said[:at], said[at:]
        for wire_ in self.wires(fd):
            wire_.coming += said
        self.log.append(f"{fd} says {len(said)} bytes, {said[:3000].hex()}")

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

    def step(self) -> None:
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
        if luck.random() < 0.4:
            self.pass_time(0)
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
        for metric in COMPARED:
            cells = slice(metric.at, metric.end)
            assert self.new.memory[cells].tolist() == self.old.memory[cells].tolist(), metric.name

    def end(self) -> None:
        """All leave: then nothing is held."""
        for fd in self.open_fds():
            self.leave(fd)
        for fd in self.old.world.wires:
            for wire_ in self.wires(fd):
                wire_.room = 10_000_000
        for _ in range(3):
            self.pass_time(0)
            self.old.settle()
            self.new.settle()
        self.compare()
        assert self.new.held == (0, 0)
        holds = self.new.core.holds
        assert {name: number for name, number in holds.items() if number} == {}
        self.new.core.shut()


@pytest.mark.parametrize("part", range(4))
def test_clients_hear_the_same(part: int) -> None:
    for seed in range(part * HISTORIES // 4, (part + 1) * HISTORIES // 4):
        history = History(seed)
        try:
            for _ in range(STEPS):
                history.step()
            history.end()
        except BaseException as error:
            error.add_note(f"seed {seed}\n" + "\n".join(each[:200] for each in history.log[-12:]))
            raise
