"""What is published waits for a link that is far behind, and no longer than it may: cores do as today's mesh does."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Final

import pytest

from skywalker.ring import Ring, token_of
from skywalker.wire import pubsub
from tests.workers.core.clusters import Cluster, Layout, OldWorker, old_cluster
from tests.workers.core.linked import new_cluster
from tests.workers.core.worlds import LIMITS, Plain, Wire
from workers.doors.pubsub import PubSub
from workers.doors.pubsub_client import PubSubClient
from workers.stats.close_reasons import Close

ROOMY: Final = dataclasses.replace(LIMITS, subscriber_buffer=10**7, waiting_bytes=10**7)
PAYLOAD: Final = bytes(60_000)
OWNER, OTHER, LISTENER = range(3)
PUBLISHER, SUBSCRIBER = 50, 51


class Behind:
    """A publisher at one worker, a subscriber at another, and what both are told."""

    def __init__(self, cluster: Cluster, publishes_at: int) -> None:
        self.cluster = cluster
        layout = cluster.layout
        ring = Ring.of_tokens(layout.tokens)
        topics = (b"topic%d" % number for number in range(100))
        self.topic = next(topic for topic in topics if ring.owner(token_of(pubsub.bus_topic(topic))) == OWNER)
        self.end = cluster.ends[OWNER, LISTENER if layout.are_siblings(OWNER, LISTENER) else ~LISTENER]
        self.drops: dict[int, Callable[[], None]] = {}
        self.wires = [self.connect(publishes_at, PUBLISHER), self.connect(LISTENER, SUBSCRIBER)]
        self.told: list[tuple[int, int, bool]] = []
        self.wires[1].coming += pubsub.subscribe(self.topic)
        self.settle()

    def connect(self, at: int, fd: int) -> Wire:
        wire_ = self.cluster.worlds[at].wires[fd] = Wire(fd)
        wire_.room = 10**9
        worker = self.cluster.workers[at]
        if isinstance(worker, OldWorker):
            connection = PubSub(Plain(wire_), "test", worker.core.commons)
            worker.core.connections.opened(connection)
            self.drops[fd] = lambda: connection.close(Close.PEER, "test")
        else:
            handle = worker.clients.let_in(PubSubClient, fd, "test").handle
            self.drops[fd] = lambda: worker.core.close(handle)
        return wire_

    @property
    def orphans(self) -> int:
        worker = self.cluster.workers[OWNER]
        return len(worker.core.orphans) if isinstance(worker, OldWorker) else worker.core.orphans

    def settle(self) -> None:
        self.cluster.settle()
        acks, messages = (len(wire_.taken) for wire_ in self.wires)
        self.told.append((acks, messages, self.wires[1].is_closed))

    def publish(self) -> bool:
        """Return whether it is acked."""
        before = len(self.wires[0].taken)
        self.wires[0].coming += pubsub.publish(self.topic, PAYLOAD)
        self.settle()
        return len(self.wires[0].taken) > before

    def pass_time(self, seconds: float) -> None:
        self.cluster.pass_until(self.cluster.now + seconds)
        self.settle()

    def live(self) -> None:
        for what_comes in (self.it_catches_up, self.it_is_stuck):
            self.end.room = 0
            acked = 0
            while self.publish():
                acked += 1
            assert acked == 8, "512 KiB are queued"
            self.publish()
            before = len(self.wires[0].taken)
            what_comes()
            assert len(self.wires[0].taken) == before + 2

    def it_catches_up(self) -> None:
        self.pass_time(0.9)
        self.end.room = 10**9
        self.settle()
        self.pass_time(0.2)
        assert not self.wires[1].is_closed

    def it_is_stuck(self) -> None:
        self.pass_time(1.1)
        self.end.room = 10**9
        self.settle()
        assert self.wires[1].is_closed


@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
@pytest.mark.parametrize("nodes", [[0, 0, 0], [0, 1, 2]], ids=["siblings", "nodes"])
def test_publications_wait_for_a_link_that_is_behind(nodes: list[int], publishes_at: int) -> None:
    layout = Layout(nodes, random.Random(1))
    old, new = Behind(old_cluster(layout, ROOMY), publishes_at), Behind(new_cluster(layout, ROOMY, 1), publishes_at)
    for each in (old, new):
        each.live()
    assert new.told == old.told
    for worker in new.cluster.workers:
        worker.core.shut()


@pytest.mark.parametrize("nodes", [[0, 0, 0], [0, 1, 2]], ids=["siblings", "nodes"])
def test_they_wait_no_longer_once_the_link_is_gone_nor_for_their_connection(nodes: list[int]) -> None:
    told = []
    layout = Layout(nodes, random.Random(1))
    for cluster in (old_cluster(layout, ROOMY), new_cluster(layout, ROOMY, 1)):
        behind = Behind(cluster, OWNER)
        behind.end.room = 0
        while behind.publish():
            pass
        behind.drops[PUBLISHER]()
        behind.settle()
        assert behind.orphans == 1
        behind.end.ended = behind.end.other.ended = True
        behind.settle()
        assert behind.orphans == 0
        told.append(behind.told)
    assert told[1] == told[0]
