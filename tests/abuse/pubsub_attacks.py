"""Attacks at the door of the pub/sub dialect."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from skywalker.limits import MIB
from tests.abuse.foe import SMALL_BUFFER, Foe, Target
from tests.workers.pubsub_client import publish, publish_typed, subscribe, unsubscribe

COMPRESSED = 1


def bombs(target: Target) -> Iterator[float]:
    """Publish what is small, and would be 64 MiB."""
    bomb = publish_typed(b"bombs", 0, COMPRESSED, zlib.compress(bytes(64 * MIB), 9)[:65_535])
    foe = Foe(target.pubsub, subscribe(b"bombs"))
    while True:
        foe.say(bomb)
        foe.hear()
        yield 0.02


def subscribers_never_read(target: Target) -> Iterator[float]:
    """Subscribe, and read nothing, while others publish."""
    subscribers = [Foe(target.pubsub, subscribe(b"unread"), receive_buffer=SMALL_BUFFER) for _ in range(10)]
    publisher = Foe(target.pubsub)
    while True:
        publisher.say(publish(b"unread", bytes(30_000)))
        publisher.hear()
        for subscriber in subscribers:
            subscriber.say(unsubscribe(b"else"))  # which it hears of if it was cut off
        yield 0.02


def publications_without_a_rest(target: Target) -> Iterator[float]:
    """Publish as fast as the node takes it."""
    foes = [Foe(target.pubsub) for _ in range(4)]
    while True:
        for foe in foes:
            foe.say(publish(b"fast", b"x") * 3000)
            foe.hear()
        yield 0.0


def changes_of_mind(target: Target) -> Iterator[float]:
    """Subscribe and publish in turns, so that each waits for the one before."""
    foe = Foe(target.pubsub)
    topics = [topic.encode() for topic in target.topics]
    said = b"".join(subscribe(b"%d" % n) + publish(b"%d" % n, b"") + unsubscribe(b"%d" % n) for n in range(1000))
    said += b"".join(subscribe(topic) + publish(topic, b"x") + unsubscribe(topic) for topic in topics)
    while True:
        foe.say(said)
        foe.hear()
        yield 0.2
