"""What is published waits for a link that is far behind, so that nothing is acked and then dropped; not for ever."""

from __future__ import annotations

import dataclasses
import random
from typing import Final

import pytest

from skywalker.ring import Ring, token_of
from skywalker.wire import pubsub
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.worlds import LIMITS, Wire
from workers.doors.client import Client
from workers.stats.close_reasons import Close

ROOMY: Final = dataclasses.replace(LIMITS, subscriber_buffer=10**7, waiting_bytes=10**7)
PAYLOAD: Final = bytes(60_000)
MESSAGE: Final = len(pubsub.publish(b"topic0", PAYLOAD))
QUEUED: Final = 8
"""So many are acked, and the next one is not: 512 KiB wait then."""

OWNER, OTHER, LISTENER = range(3)
SIBLINGS: Final = pytest.mark.parametrize("nodes", [[0, 0, 0], [0, 1, 2]], ids=["siblings", "nodes"])


class Behind:
    """A publisher at one worker, a subscriber at another, and the end of the link to that."""

    def __init__(self, nodes: list[int], publishes_at: int = OWNER) -> None:
        layout = Layout(nodes, random.Random(1))
        self.cluster = Cluster(layout, ROOMY, 1)
        ring = Ring.of_tokens(layout.tokens)
        topics = (b"topic%d" % number for number in range(10))
        self.topic = next(topic for topic in topics if ring.owner(token_of(pubsub.bus_topic(topic))) == OWNER)
        self.end = self.cluster.ends[OWNER, LISTENER if layout.are_siblings(OWNER, LISTENER) else ~LISTENER]
        self.owner = self.cluster.workers[OWNER].core
        self.publisher, self.publishing = self.connect(publishes_at, 50)
        _, self.subscriber = self.connect(LISTENER, 51)
        self.subscriber.coming += pubsub.subscribe(self.topic)
        self.settle()
        self.subscriber.taken.clear()

    def connect(self, at: int, fd: int) -> tuple[Client, Wire]:
        wire_ = self.cluster.worlds[at].wires[fd] = Wire(fd)
        wire_.room = 10**9
        return self.cluster.workers[at].connect(fd, pubsub=True), wire_

    def settle(self, seconds: float = 0.0) -> None:
        self.cluster.pass_until(self.cluster.now + seconds)
        self.cluster.settle()

    @property
    def acks(self) -> int:
        return len(self.publishing.taken)

    @property
    def messages(self) -> int:
        assert len(self.subscriber.taken) % MESSAGE == 0
        return len(self.subscriber.taken) // MESSAGE

    def publish(self, count: int = 1) -> None:
        for _ in range(count):
            self.publishing.coming += pubsub.publish(self.topic, PAYLOAD)
            self.settle()

    def fall(self) -> None:
        """Be so far behind that publications wait."""
        self.end.room = 0
        self.publish(QUEUED)
        assert self.acks == QUEUED
        self.publish(2)
        assert self.acks == QUEUED
        self.settle(0.9)
        assert (self.acks, self.messages) == (QUEUED, 0)

    def has_room(self) -> None:
        self.end.room = 10**9
        self.settle()


@SIBLINGS
@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
def test_publications_wait_for_a_link_that_is_behind(nodes: list[int], publishes_at: int) -> None:
    behind = Behind(nodes, publishes_at)
    behind.fall()
    behind.has_room()
    assert behind.acks == behind.messages == QUEUED + 2
    behind.settle(1.1)
    behind.publish()
    assert behind.acks == behind.messages == QUEUED + 3
    assert not behind.subscriber.is_closed


@SIBLINGS
@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
def test_but_not_for_ever(nodes: list[int], publishes_at: int) -> None:
    behind = Behind(nodes, publishes_at)
    behind.fall()
    behind.settle(0.2)
    assert behind.acks == QUEUED + 2
    behind.publish()
    assert behind.acks == QUEUED + 3, "whoever was there gets nothing more"
    behind.has_room()
    assert behind.subscriber.is_closed, "it would miss something"


@SIBLINGS
def test_nor_once_the_link_is_gone(nodes: list[int]) -> None:
    behind = Behind(nodes)
    behind.fall()
    behind.end.ended = behind.end.other.ended = True
    behind.settle()
    assert behind.acks == QUEUED + 2


@SIBLINGS
def test_they_wait_without_their_connection_too(nodes: list[int]) -> None:
    behind = Behind(nodes)
    behind.fall()
    behind.publisher.close(Close.PEER, "test")
    behind.settle()
    assert behind.owner.orphans == 2
    behind.has_room()
    assert behind.owner.orphans == 0
    assert behind.messages == QUEUED + 2
