"""A worker is replaced, and its successor dies at once: what waits at the first comes before what goes to the third."""

from __future__ import annotations

import random
from typing import Final

from skywalker.wire import pubsub
from tests.workers.core.clusters import Cluster, End, Layout, pair
from tests.workers.core.worlds import LIMITS, Wire
from workers.stats.hands import life_of

LIVES: Final = [life_of(number) for number in (101, 102)]


class Replaced:
    """A publisher at one of two siblings, and links to those who succeed the other one, of which a test has the end."""

    def __init__(self) -> None:
        layout = Layout([0, 0], random.Random(1))
        self.cluster = Cluster(layout, LIMITS, 1)
        self.here, self.before = self.cluster.workers
        self._topic = layout.published_to(1)
        self._lives, self._fd = iter(LIVES), 5_000
        self._publishing = self.here.world.wires[50] = Wire(50)
        self.here.connect(50, pubsub=True)

    def publish(self, payload: bytes) -> None:
        self._publishing.coming += pubsub.publish(self._topic, payload)
        self.here.settle()

    def successor(self) -> End:
        """Have the publisher's worker be linked to another one, and return the end of that."""
        self._fd += 2
        ours, theirs = pair((self._fd, self._fd + 1), is_stream=False)
        self.here.world.wires[ours.fd] = ours  # type: ignore[assignment]  # as it is for a link in clusters.py
        self.here.hub.siblings.connect(1, ours.fd, next(self._lives))
        self.here.settle()
        return theirs


def said(end: End) -> bytes:
    return b"".join(end.coming)


def test_what_is_published_waits_for_what_was_though_the_first_successor_is_dead() -> None:
    replaced = Replaced()
    replaced.publish(b"the first")  # which the one that is replaced has yet to read
    first = replaced.successor()
    replaced.publish(b"the second")
    first.close()
    replaced.here.settle()
    second = replaced.successor()
    assert b"the second" not in said(first) + said(second)
    replaced.before.hub.be_replaced()
    replaced.cluster.settle()
    assert 0 < said(second).find(b"the first") < said(second).find(b"the second")
