"""A connection goes to the sibling that owns what it asks for: its calls go on there, and its client notices nothing."""

from __future__ import annotations

import random
from typing import Final

from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.workers.core.clients import add_up
from tests.workers.core.clusters import Cluster, End, Layout
from tests.workers.core.worlds import LIMITS, Wire

MINUTE: Final = values.pack(60_000)


def framed(*elements: bytes) -> bytes:
    body = bytes((0x90 | len(elements),)) + b"".join(elements)
    return len(body).to_bytes(2, "big") + body


class Two:
    """Two siblings, of which the second owns `topic`."""

    def __init__(self) -> None:
        layout = Layout([0, 0], random.Random(1))
        self.cluster = Cluster(layout, LIMITS, 1)
        self.here, self.there = self.cluster.workers
        self.topic = next(
            topic
            for topic in (values.pack(f"topic {number}") for number in range(100))
            if layout.ring().owner(token_of(topic)) == layout.places[1]
        )
        self.fd = 10

    def connect(self, at: int = 0) -> Wire:
        self.fd += 1
        worker = self.cluster.workers[at]
        worker.world.wires[self.fd] = made = Wire(self.fd)
        worker.connect(self.fd)
        return made

    def draw(self, wire_: Wire) -> None:
        (client,) = [each for each in self.here.hub.clients if self.here.core.fd(each.handle) == wire_.fd]
        self.here.core.draw(client.handle, self.here.hub.siblings.all()[0].handle)

    def settle(self) -> None:
        self.cluster.settle()

    def end(self, one: int = 0) -> End:
        return self.cluster.ends[one, 1 - one]


def answers(wire_: Wire) -> list[list[bytes]]:
    """Take what it was written."""
    frames, left = split(bytes(wire_.taken))
    assert not left
    wire_.taken.clear()
    return [list(frame) for frame in frames]  # type: ignore[arg-type]  # none of them is bad


def test_calls_that_wait_go_along() -> None:
    two = Two()
    one, other = two.connect(), two.connect(1)
    one.coming += b"".join(framed(wire.RECV, values.pack(id), MINUTE, two.topic) for id in range(3))
    one.coming += framed(wire.TAKE, values.pack(7), MINUTE, two.topic, values.pack("group"))
    one.coming += framed(wire.RECV, values.pack("x" * 25), values.pack(1000), values.pack("late"), two.topic)
    half = framed(wire.PING, values.pack(9))
    one.coming += half[:5]
    two.settle()
    two.draw(one)
    two.settle()
    assert one.fd in two.there.world.wires
    assert one.fd not in two.here.world.wires
    assert [two.here.core.holds[name] for name in ("connections", "rows", "calls")] == [0, 0, 0]
    assert two.there.core.holds["calls"] == 5
    assert two.here.core.moving == two.there.core.moving == 0
    two.cluster.pass_until(two.cluster.now + 1.1)
    two.settle()
    assert answers(one) == [[wire.RECV, values.pack("x" * 25), values.pack("late")]]
    one.coming += half[5:]
    other.coming += framed(wire.SEND, values.pack(1), MINUTE, two.topic, values.pack("hello"))
    two.settle()
    assert answers(other) == [[wire.SEND, values.pack(1), wire.TRUE]]
    told = answers(one)
    assert sorted(told[:1] if told[0][0] == wire.PING else told[-1:])[0][0] == wire.PING
    assert sorted(each for each in told if each[0] != wire.PING) == sorted(
        [[wire.TAKE, values.pack(7), values.pack("hello")]]
        + [[wire.RECV, values.pack(id), values.pack("hello")] for id in range(3)]
    )
    add_up(two.here, [])
    add_up(two.there, [one, other])
