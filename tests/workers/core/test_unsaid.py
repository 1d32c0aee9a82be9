"""What a worker says to a sibling that does not wait for it: it comes with what is said next, or soon; and of who dies
before it does, the hand is read."""

from __future__ import annotations

import dataclasses
import random
from typing import Final

import pytest

from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.worlds import LIMITS, Wire
from workers.stats.hands import ROOM

SENDER, TAKER, OWNER = range(3)
MS: Final = values.pack(10_000)
SOON_S: Final = 0.02
"""A while, and what timers are exact to."""


class Three:
    """Three siblings: one with a client that sends, one with those that take, and the owner of their topics."""

    def __init__(self) -> None:
        layout = Layout([0, 0, 0], random.Random(2))
        limits = dataclasses.replace(LIMITS, max_moves=0)  # each client stays at its worker, whomever it calls
        self.cluster = Cluster(layout, limits, 1)
        self._ring = Ring.of_tokens(layout.tokens)
        topics = (values.pack(f"topic{number}") for number in range(200))
        self.topics = [topic for topic in topics if self.owner(topic) == OWNER]
        self.wires = [self.connect(at) for at in (SENDER, TAKER)]

    def owner(self, topic: bytes) -> int:
        return self._ring.owner(token_of(topic))

    def connect(self, at: int) -> Wire:
        fd = 50 + at
        wire_ = self.cluster.worlds[at].wires[fd] = Wire(fd)
        self.cluster.workers[at].connect(fd)
        return wire_

    def say(self, at: int, method: bytes, id: int, *rest: bytes) -> None:
        self.wires[at].coming += wire.frame(method, values.pack(id), *rest)
        self.cluster.settle()

    def told(self, at: int) -> list[list[bytes]]:
        frames, _ = split(bytes(self.wires[at].taken))
        self.wires[at].taken.clear()
        return [[*frame] for frame in frames]

    def meet(self, topic: bytes) -> None:
        self.say(TAKER, wire.RECV, 1, MS, topic)
        self.say(SENDER, wire.SEND, 2, MS, topic, values.pack("value"))
        assert self.told(TAKER) == [[wire.RECV, values.pack(1), values.pack("value")]]
        assert self.told(SENDER) == [[wire.SEND, values.pack(2), wire.TRUE]], "its worker was told directly"

    def held_by_owner(self) -> int:
        _, held = self.cluster.workers[OWNER].core.held()
        return held

    def packets_to_the_owner(self) -> int:
        return self.cluster.ends[TAKER, OWNER].packets

    def pass_time(self, seconds: float) -> None:
        self.cluster.pass_until(self.cluster.now + seconds)
        self.cluster.settle()

    def shut(self) -> None:
        for worker in self.cluster.workers:
            worker.core.shut()


def test_the_owner_soon_hears_what_it_frees() -> None:
    three = Three()
    three.meet(three.topics[0])
    assert three.held_by_owner(), "it has not heard that the value was taken"
    three.pass_time(SOON_S)
    assert not three.held_by_owner()
    three.shut()


def test_and_sooner_with_whatever_it_is_told_next() -> None:
    three = Three()
    three.meet(three.topics[0])
    packets = three.packets_to_the_owner()
    three.say(TAKER, wire.RECV, 3, MS, three.topics[1])
    assert three.packets_to_the_owner() == packets + 1
    three.say(TAKER, wire.CANCEL, 4, values.pack(3))
    assert not three.held_by_owner()
    three.shut()


def test_and_at_once_when_the_hand_has_little_room_left() -> None:
    three = Three()
    three.meet(three.topics[0])
    assert three.held_by_owner()
    topic = next(topic for topic in map(values.pack, range(200)) if three.owner(topic) == SENDER)
    for _ in range(ROOM // 2 // LIMITS.max_calls + 1):
        for number in range(LIMITS.max_calls):
            three.wires[TAKER].coming += wire.frame(wire.RECV, values.pack(number), MS, topic)
        three.cluster.settle()
        three.say(SENDER, wire.SEND, 1, MS, topic, values.pack("value"))
    assert not three.held_by_owner()
    three.shut()


@pytest.mark.parametrize("acks", [False, True], ids=["plain", "acks"])
def test_a_taker_that_dies_before_it_was_said_has_the_value_nevertheless(acks: bool) -> None:
    three = Three()
    if acks:
        three.say(TAKER, wire.HELLO, 0, values.pack({"ack": True}))
        three.told(TAKER)
        three.say(TAKER, wire.RECV, 1, MS, three.topics[0])
        three.say(SENDER, wire.SEND, 2, MS, three.topics[0], values.pack("value"))
        three.say(TAKER, wire.ACK, 1)
        assert three.told(SENDER) == [[wire.SEND, values.pack(2), wire.TRUE]]
        assert not three.held_by_owner(), "the hand does not say so of what is acknowledged: it was said at once"
    else:
        three.meet(three.topics[0])
        assert three.held_by_owner()
    three.say(SENDER, wire.RECV, 5, MS, three.topics[0])
    three.cluster.kill(TAKER)
    three.cluster.settle()
    assert three.told(SENDER) == [], "nobody else is given it"
    three.say(SENDER, wire.CANCEL, 6, values.pack(5))
    three.pass_time(SOON_S)
    assert not three.held_by_owner()
    three.shut()


@pytest.mark.parametrize("another", [False, True], ids=["nobody", "another"])
def test_what_is_not_acknowledged_when_its_owner_dies_is_in_doubt_and_offered_again(another: bool) -> None:
    three = Three()
    topic, group, value = three.topics[0], values.pack("group"), values.pack("value")
    three.say(SENDER, wire.HELLO, 0, values.pack({}))
    three.say(TAKER, wire.HELLO, 0, values.pack({"ack": True}))
    three.say(TAKER, wire.TAKE, 1, MS, topic, group)
    three.say(SENDER, wire.SEND, 2, MS, topic, value)
    assert three.told(TAKER)[1:] == [[wire.TAKE, values.pack(1), value]]
    three.told(SENDER)
    three.cluster.kill(OWNER)
    for one, other in three.cluster.layout.links():
        if OWNER in (one, other):
            three.cluster.link(one, other)
    three.cluster.settle()
    if another:
        three.say(TAKER, wire.TAKE, 3, MS, topic, group)
        assert three.told(TAKER) == [[wire.TAKE, values.pack(3), value]]
        three.say(TAKER, wire.ACK, 3)
        assert three.told(SENDER) == [[wire.SEND, values.pack(2), wire.TRUE]]
    else:
        three.pass_time(10.1)
        ((*call, result),) = three.told(SENDER)
        assert call == [wire.SEND, values.pack(2)]
        assert b"unknown-outcome" in result
    three.shut()
