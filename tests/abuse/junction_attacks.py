"""Attacks at the door of the MessagePack dialect.

Each is as bad as a few connections can be in what they say, and modest in how much of it: what is measured is what
the node makes of it, and not that the attacker has a processor, too.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator

from skywalker.limits import MAX_UNREADABLE
from tests.abuse.collisions import colliding_timestamps, colliding_topics
from tests.abuse.foe import SMALL_BUFFER, Attack, Foe, Target
from tests.workers.wire_client import call, framed, packed, raw_call

LONG = 600_000
"""Milliseconds: longer than any attack."""


# Those who say nothing, little or half of it.


def vanished(target: Target) -> Iterator[float]:
    """Have calls wait, and be gone without a packet; half of them met somebody before."""
    while True:
        foe = Foe(target.junction, call(":hello", 1, {}) + call(":recv!", 2, LONG, "vanished"))
        foe.await_bytes(100)
        foe.vanish()
        yield 0.02


def answers_no_ping(target: Target) -> Iterator[float]:
    """Have calls wait, and say nothing more."""
    waits = call(":hello", 1, {}) + call(":recv!", 2, LONG, "no ping")
    foes = [Foe(target.junction, waits) for _ in range(100)]
    while True:
        for foe in foes:
            foe.hear()
        yield 0.05


def slow_writers(target: Target) -> Iterator[float]:
    """Write a byte a second each, at both doors."""
    foes = [Foe(target.junction, b"\xff\xff\x95") for _ in range(90)]
    foes += [Foe(target.pubsub, b"\x01\xff") for _ in range(90)]
    while True:
        for foe in foes:
            foe.say(b"\x01")
            yield 1 / len(foes)


def half_a_frame(target: Target) -> Iterator[float]:
    """Write all of a frame but its last byte, on many connections, and no more."""
    foes = [Foe(target.junction, call(":ping", b"x" * 60_000)[:-1]) for _ in range(100)]
    while True:
        for foe in foes:
            foe.hear()
        yield 0.1


# Those who do not read.


def never_reads(target: Target) -> Iterator[float]:
    """Ask at once for much more than was said, on ever another connection, and read nothing."""
    asks = call(":nodes", 1) * 3000 + call(":tokens", 1) * 3000
    foes: list[Foe] = []
    while True:
        if len(foes) == 100:
            foes.pop(0).reset()
        foes.append(Foe(target.junction, receive_buffer=SMALL_BUFFER))
        foes[-1].say(asks)
        yield 0.05


def receivers_never_read(target: Target) -> Iterator[float]:
    """Receive large values, and read none."""
    sender = Foe(target.junction)
    receivers = [
        Foe(target.junction, call(":recv!", 1, LONG, "unread") * 30, receive_buffer=SMALL_BUFFER) for _ in range(20)
    ]
    value = call(":send!", 1, 100, "unread", b"x" * 60_000)
    while True:
        sender.say(value)
        sender.hear()
        for receiver in receivers:
            receiver.say(call(":ack", 1))  # which it hears of if it was closed
        yield 0.01


def subscribers_never_read(target: Target) -> Iterator[float]:
    """Subscribe, and read nothing, while values come: large ones, and small ones that take more than their bytes."""
    subscribers = [
        Foe(target.junction, call(":subscribe", 1, "unread"), receive_buffer=SMALL_BUFFER) for _ in range(10)
    ]
    sender = Foe(target.junction)
    values = call(":send!", 1, LONG, "unread", 1) * 20 + call(":send!", 1, LONG, "unread", b"x" * 30_000)
    while True:
        sender.say(values)
        sender.hear()
        for subscriber in subscribers:
            subscriber.say(call(":ack", 1))  # which it hears of if it was cut off
        yield 0.02


def one_subscriber_under_many_ids(target: Target) -> Iterator[float]:
    """Subscribe to one topic again and again, read nothing, and have many values come at once, and large ones."""
    every = b"".join(call(":subscribe", id, "many") for id in range(500))
    subscriber = Foe(target.junction, every, receive_buffer=SMALL_BUFFER)
    sender = Foe(target.junction)
    while True:
        for values in (call(":send!", 1, 1000, "many", 1) * 200, call(":send!", 1, 1000, "many", b"x" * 60_000)):
            sender.say(values)
            sender.hear()
            yield 0.1
            subscriber.say(call(":ack", 1))  # which it hears of if it was cut off


# Floods.


def connections_held(target: Target) -> Iterator[float]:
    """Connect far more often than is allowed, and stay."""
    foes = [Foe(target.junction) for _ in range(250)]
    while True:
        for foe in foes[-5:]:
            foe.hear()
        for _ in range(5):
            foes.append(Foe(target.junction))
        for foe in foes[:-1000]:
            foe.reset()
        del foes[:-1000]
        yield 0.01


def flood(said: Callable[[], bytes], pause: float = 0.01, first: bytes = b"") -> Attack:
    """Return the attack of one who says something again and again, and reads the answers."""

    def attack(target: Target) -> Iterator[float]:
        foe = Foe(target.junction, first)
        data = said()
        while True:
            foe.say(data)
            foe.hear()
            yield pause

    return attack


def calls_without_a_rest(target: Target) -> Iterator[float]:
    """Call as fast as the node takes it."""
    foes = [Foe(target.junction) for _ in range(4)]
    while True:
        for foe in foes:
            foe.say(call(":send!", 1, 0, "fast", 1) * 3000)
            foe.hear()
        yield 0.0


def unreadable(target: Target) -> Iterator[float]:
    """Say what cannot be read until the node closes, and come again; or stop just before that."""
    fewer = Foe(target.junction, framed(b"\xc1") * (MAX_UNREADABLE - 1))
    while True:
        foe = Foe(target.junction, framed(b"\xc1") * MAX_UNREADABLE)
        fewer.say(call(":ping", 1) * 10)
        fewer.hear()
        yield 0.01
        foe.socket.close()


def colliding_names(target: Target) -> Iterator[float]:
    """Have calls wait on topics that all have one token, so that one worker has them all."""
    topics = colliding_topics(900)
    foes = [
        Foe(target.junction, b"".join(raw_call(packed(":recv!"), b"\x01", b"\xcd\x75\x30", topic) for topic in topics))
        for _ in range(10)
    ]
    asks = b"".join(raw_call(packed(":send!"), b"\x02", b"\x00", topic, b"\x01") for topic in topics[:50])
    waits = b"".join(raw_call(packed(":recv!"), b"\x01", b"\xcd\x75\x30", topic) for topic in topics[:50])
    while True:
        for foe in foes:
            foe.say(asks + waits)
            foe.hear()
            yield 0.01


def many_groups(target: Target) -> Iterator[float]:
    """Have takers of ever another group wait on one topic, and ask who is there."""
    foes = [
        Foe(target.junction, b"".join(call(":take!", id, LONG, "groups", f"{number}-{id}") for id in range(990)))
        for number in range(20)
    ]
    while True:
        foes[0].say(call(":topic", 1, "groups") * 5)
        for foe in foes:
            foe.hear()
        yield 0.05


# What costs more than it looks.


def lines_of_senders(target: Target) -> Iterator[float]:
    """Listen for more than may be given while a long line of senders waits."""
    large = b"".join(call(":send!", id, LONG, "line", b"x" * 30_000) for id in range(5))
    foes = [Foe(target.junction, large)]
    foes += [Foe(target.junction, call(":send!", 1, LONG, "line", 1) * 990) for _ in range(20)]
    while True:
        listener = Foe(target.junction, receive_buffer=SMALL_BUFFER)
        listener.say(call(":recv!", 1, LONG, "line") * 200)
        yield 0.1
        listener.reset()


def given_back(target: Target) -> Iterator[float]:
    """Take the values of a long line, and give them back in no order."""
    foes = [Foe(target.junction, call(":send!", 1, LONG, "back", 1) * 990) for _ in range(10)]
    taker = Foe(target.junction, call(":hello", 1, {"ack": True}))
    ids = [*range(300)]
    while True:
        taker.say(b"".join(call(":recv!", id, LONG, "back") for id in ids))
        yield 0.05
        random.shuffle(ids)
        taker.say(b"".join(call(":cancel", 1000, id) for id in ids))
        yield 0.05
        for foe in (taker, *foes):
            foe.hear()


def subscriptions_that_come_and_go(target: Target) -> Iterator[float]:
    """Subscribe, and unsubscribe at once."""
    foe = Foe(target.junction)
    while True:
        for topic in target.topics:
            foe.say((call(":subscribe", 1, topic) + call(":unsubscribe", 2, 1)) * 50)
        foe.hear()
        yield 0.02


def _colliding_options() -> bytes:
    keys = colliding_timestamps(4000)
    options = b"\xde" + struct.pack(">H", len(keys)) + b"".join(key + b"\xc0" for key in keys)
    return raw_call(packed(":hello"), b"\x01", options)


def _cheap() -> bytes:
    """Return calls that wait for nothing."""
    none = call(":recv!", 1, 0, "topic") + call(":cancel", 1, 2) + call(":ack", 3) + call(":topic", 1, "topic")
    return (call(":ping", 1) + none) * 20 + call(":hello", 1, {"name": "x" * 200, "ring": True}) * 5


FLOODS: dict[str, Attack] = {
    "calls": flood(_cheap),
    "colliding keys of options": flood(_colliding_options, 0.1),
}
