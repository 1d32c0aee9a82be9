"""What is published waits until it is written to all links that it is for, so that nothing is acked that a worker then
takes with it; not for ever, unless one is far behind."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Final

import pytest

from skywalker.wire import pubsub
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.worlds import LIMITS, Wire
from workers.doors.client import Client
from workers.stats.close_reasons import Close

ROOMY: Final = dataclasses.replace(LIMITS, subscriber_buffer=10**7, waiting_bytes=10**7)
PAYLOAD: Final = bytes(60_000)
MESSAGE: Final = len(pubsub.publish(b"topic0", PAYLOAD))
QUEUED: Final = 8
"""So many are acked once a link has stood still for a second, and the next one is not: 512 KiB wait then."""

OWNER, OTHER, LISTENER = range(3)
SIBLINGS: Final = pytest.mark.parametrize("nodes", [[0, 0, 0], [0, 1, 2]], ids=["siblings", "nodes"])


class Behind:
    """A publisher at one worker, a subscriber at another, and the end of the link to that."""

    def __init__(self, nodes: list[int], publishes_at: int = OWNER) -> None:
        layout = Layout(nodes, random.Random(1))
        self.cluster = Cluster(layout, ROOMY, 1)
        self.topic = layout.published_to(OWNER)
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

    def stand_still(self) -> None:
        """Take nothing for so long that publications wait no longer."""
        self.end.room = 0
        self.publish(2)
        self.settle(0.9)
        assert self.acks == 0
        self.settle(0.2)
        assert (self.acks, self.messages) == (2, 0)

    def has_room(self) -> None:
        self.end.room = 10**9
        self.settle()


@SIBLINGS
@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
def test_nothing_is_acked_that_is_not_written(nodes: list[int], publishes_at: int) -> None:
    behind = Behind(nodes, publishes_at)
    behind.end.room = 0
    behind.publish(3)
    assert (behind.acks, behind.messages) == (0, 0)
    if behind.end.is_stream:
        behind.end.room = 2 * MESSAGE
        behind.settle()
        assert (behind.acks, behind.messages) == (1, 1), "of the second one a part is written"
    behind.has_room()
    assert (behind.acks, behind.messages) == (3, 3)


@SIBLINGS
@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
def test_nobody_waits_for_one_that_stands_still_before_it_takes_something(nodes: list[int], publishes_at: int) -> None:
    behind = Behind(nodes, publishes_at)
    behind.stand_still()
    behind.publish()
    assert behind.acks == 3
    behind.has_room()
    assert behind.messages == 3, "all that was queued for it comes"
    behind.publish()
    assert behind.acks == 4
    behind.end.room = 0
    behind.publish()
    assert behind.acks == 4
    behind.has_room()
    assert behind.acks == behind.messages == 5
    assert not behind.subscriber.is_closed


@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
def test_one_that_takes_little_at_a_time_is_waited_for(publishes_at: int) -> None:
    behind = Behind([0, 1, 2], publishes_at)
    behind.end.room = 0
    behind.publish(4)
    for count in range(1, 5):
        behind.settle(0.9)
        assert behind.acks == count - 1
        behind.end.room = MESSAGE + 50  # each is a little longer between workers
        behind.settle()
        assert behind.acks == count


@SIBLINGS
@pytest.mark.parametrize("publishes_at", [OWNER, OTHER], ids=["here", "elsewhere"])
def test_one_that_stands_still_gets_no_more_than_it_can_catch_up_with(nodes: list[int], publishes_at: int) -> None:
    behind = Behind(nodes, publishes_at)
    behind.stand_still()
    behind.publish(QUEUED - 2)
    assert behind.acks == QUEUED
    assert not behind.subscriber.is_closed
    behind.publish(2)
    behind.settle(0.02)
    assert behind.acks == QUEUED + 2, "whoever was there gets nothing more"
    behind.has_room()
    assert behind.subscriber.is_closed, "it would miss something"


@SIBLINGS
def test_so_does_one_for_which_much_is_published_meanwhile(nodes: list[int]) -> None:
    behind = Behind(nodes)
    behind.end.room = 0
    behind.publish(5)
    others = [behind.connect(OWNER, 60 + number)[1] for number in range(2)]
    for other in others:
        other.coming += pubsub.publish(behind.topic, PAYLOAD) * 5
    behind.settle(0.9)
    assert not any(wire_.taken for wire_ in (behind.publishing, *others))
    behind.settle(0.2)
    assert all(wire_.taken for wire_ in (behind.publishing, *others))
    behind.has_room()
    assert behind.subscriber.is_closed


@SIBLINGS
def test_nobody_waits_for_a_link_that_is_gone(nodes: list[int]) -> None:
    behind = Behind(nodes)
    behind.end.room = 0
    behind.publish(2)
    behind.end.ended = behind.end.other.ended = True
    behind.settle()
    assert behind.acks == 2


@SIBLINGS
def test_what_is_published_waits_without_its_connection_too(nodes: list[int]) -> None:
    behind = Behind(nodes)
    behind.end.room = 0
    behind.publish(2)
    behind.publisher.close(Close.PEER, "test")
    behind.settle()
    assert behind.owner.orphans == 2
    behind.has_room()
    assert behind.owner.orphans == 0
    assert behind.messages == 2


def test_one_that_has_to_wait_as_its_turn_comes_again_is_not_read_meanwhile() -> None:
    behind = Behind([0, 0, 0], publishes_at=OTHER)
    behind.cluster.ends[OTHER, OWNER].is_delayed = True  # nothing is acked
    world, asked = behind.cluster.worlds[OTHER], itertools.count()
    behind.cluster.workers[OTHER].machine.under.clock = lambda: world.now + next(asked) / 1000  # so that a turn is long
    behind.publishing.coming += 8 * pubsub.publish(behind.topic, b"") + pubsub.subscribe(b"another")
    behind.settle()
    behind.publishing.coming += pubsub.publish(behind.topic, b"")
    behind.settle()
    assert (behind.acks, behind.publishing.mask) == (0, 0)
    behind.cluster.ends[OTHER, OWNER].is_delayed = False
    behind.settle()
    assert behind.acks == 10
