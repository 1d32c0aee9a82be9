"""Workers that are killed, drained and reloaded, and whose clients are all elsewhere: these miss nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

import psutil
import pytest

from tests.cluster.clusters import ClusterNode
from tests.helpers import eventually
from tests.workers.pubsub_bus import Bus, PubSubCluster, doors_of
from tests.workers.pubsub_client import PubSubClient

HIT: Final = 0
"""The place of the worker that things are done to, the first of the first node."""

TOPICS: Final = 16
HITS: Final = 5
ACK_S: Final = 12.0

Seen = dict[tuple[int, bytes], list[int]]
"""By publisher and topic, the numbers that came, in the order they came."""


class Publisher(threading.Thread):
    """One that publishes numbers on all topics in turn, each once the one before is acked."""

    def __init__(self, number: int, client: PubSubClient, topics: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.published = 0
        self._client = client
        self._topics = topics
        self._ends = threading.Event()

    def run(self) -> None:
        while not self._ends.is_set():
            topic = self._topics[self.published % len(self._topics)]
            self._client.publish(topic, b"%d %d" % (self.number, self.published), ACK_S)
            self.published += 1
            time.sleep(0.000_5)

    def end(self) -> None:
        """Publish no more."""
        self._ends.set()
        self.join()

    def wanted(self) -> Seen:
        """Return what each subscriber should have seen."""
        return {
            (self.number, topic): [*range(first, self.published, len(self._topics))]
            for first, topic in enumerate(self._topics)
        }


class Everywhere:
    """A publisher and a subscriber of all topics at each place that nothing is done to."""

    def __init__(self, bus: Bus, connect: Callable[[int], PubSubClient]) -> None:
        topics = [topic.encode() for topic in bus.topics(TOPICS)]
        places = [place for place in range(len(bus)) if place != HIT]
        self._subscribers = {place: connect(place) for place in places}
        for subscriber in self._subscribers.values():
            subscriber.subscribe(*topics)
        self._publishers = [Publisher(place, connect(place), topics) for place in places]
        self._seen: dict[int, Seen] = {place: defaultdict(list) for place in places}
        for publisher in self._publishers:
            publisher.start()

    def go_on(self, count: int = 30) -> None:
        """Have each publish so many more."""
        wanted = [publisher.published + count for publisher in self._publishers]

        def have() -> bool:
            assert all(publisher.is_alive() for publisher in self._publishers), "one had no ack in time"
            self._take_in()
            return [each.published for each in self._publishers] >= wanted

        eventually(have, 15)

    def _take_in(self) -> None:
        for place, subscriber in self._subscribers.items():
            for message in subscriber.arrived():
                publisher, number = map(int, message.payload.split())
                self._seen[place][publisher, message.topic].append(number)
            assert not subscriber.ended, "nothing was done to its worker"

    def assert_nothing_is_missed(self, *, again: bool) -> None:
        """What was published has come to all, in its order, and once unless it may come `again`."""
        wanted: Seen = {}
        for publisher in self._publishers:
            publisher.end()
            wanted |= publisher.wanted()

        def missed() -> dict[int, Seen]:
            self._take_in()
            found = {
                place: {key: sorted({*numbers} - {*seen[key]}) for key, numbers in wanted.items()}
                for place, seen in self._seen.items()
            }
            return {
                place: lacks for place, seen in found.items() if (lacks := {key: n for key, n in seen.items() if n})
            }

        with contextlib.suppress(AssertionError):  # which would not say what
            eventually(lambda: not missed(), 3)
        assert not missed()
        for seen in self._seen.values():
            for key, numbers in seen.items():
                assert (sorted({*numbers}) if again else numbers) == wanted[key]
                assert numbers == sorted(numbers)


@contextlib.contextmanager
def everywhere(cluster: PubSubCluster) -> Iterator[Everywhere]:
    """Yield those of a cluster that has started, and end them."""
    bus = cluster.bus()
    with doors_of(bus) as doors:
        yield Everywhere(bus, doors.pubsub)


def worker_pid(node: ClusterNode, worker: int) -> int | None:
    """Return the process in the place of a worker, if there is one."""
    for child in psutil.Process(node.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() == f"skywalker-{worker}" and child.status() != psutil.STATUS_ZOMBIE:
                return child.pid
    return None


def wait_for_successor(node: ClusterNode, victim: int) -> None:
    eventually(lambda: worker_pid(node, HIT) not in (None, victim), 10)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "drained"])
def test_nobody_elsewhere_misses_anything_if_a_worker_is(how: signal.Signals) -> None:
    with PubSubCluster(2, workers=2) as cluster:
        cluster.start()
        node = cluster.nodes[0]
        with everywhere(cluster) as clients:
            for _ in range(HITS):
                clients.go_on()
                victim = worker_pid(node, HIT)
                assert victim is not None
                os.kill(victim, how)
                wait_for_successor(node, victim)
            clients.go_on()
            clients.assert_nothing_is_missed(again=how is signal.SIGKILL)
        assert not any("Traceback" in each.log for each in cluster.nodes)


def test_nobody_misses_anything_if_a_node_is_reloaded() -> None:
    with PubSubCluster(2, workers=2, drain_timeout_s=60.0) as cluster:
        cluster.start()
        node = cluster.nodes[0]
        with everywhere(cluster) as clients:
            clients.go_on()
            before = node.worker_pids()
            os.kill(node.pid, signal.SIGHUP)

            def is_replaced() -> bool:
                clients.go_on()
                return len(node.worker_pids()) > len(before)

            # The first of them, that is. The agent of the other node may be its client, and keep it for a while.
            eventually(is_replaced, 20)
            clients.go_on(100)
            clients.go_on()
            clients.assert_nothing_is_missed(again=False)
        assert not any("Traceback" in each.log for each in cluster.nodes)
