"""Reloads under load: what one connection publishes to a topic, or sends there, arrives in its order.

One case is let pass. A value that was given to a subscriber who is lost before it has that is offered again, and may
come behind later ones to whoever has subscribed since: so a send that is older than the subscription is not judged.

SKYWALKER_ORDER_RELOADS says how many reloads there are, one after the other, and SKYWALKER_ORDER_DELIVERIES how many
values arrive meanwhile, at least; with `-s` each test prints how many did, and how many of them out of order.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import NamedTuple

import pytest

from skywalker.cli.demo_cluster.ports import free_ports
from tests.cluster.clusters import ClusterNode
from tests.helpers import eventually, time_factor
from tests.workers.processes import FAULTY, node
from tests.workers.pubsub_bus import PubSubCluster
from tests.workers.pubsub_client import PubSubClient, publish
from tests.workers.reloads import reload
from tests.workers.wire_client import Address, ConnectionEnded, WireClient, packed, raw_call

RELOADS = int(os.environ.get("SKYWALKER_ORDER_RELOADS", "3"))
DELIVERIES = int(os.environ.get("SKYWALKER_ORDER_DELIVERIES", "0"))

LEAST_RATE = 1000
"""Deliveries a second that any machine comes to."""

TOPICS = [f"topic-{n}" for n in range(8)]
BATCH = 64
"""What a connection says at once."""

TIMEOUT_MS = 2000
"""Of a send: less than a test waits for replies, since nobody listens any more at the end."""

_connections = itertools.count()


def publish_batches(doors: Sequence[Address], stop: threading.Event) -> None:
    """Publish until told to stop, and over another connection when one is closed."""
    while not stop.is_set():
        with closing(PubSubClient.open(random.choice(doors))) as client:
            name, numbers = next(_connections), itertools.count(1)
            while not stop.wait(0.002):
                batch = [
                    (TOPICS[n % len(TOPICS)].encode(), b"%d %d inf" % (name, n))
                    for n in itertools.islice(numbers, BATCH)
                ]
                try:
                    client.write(b"".join(publish(*each) for each in batch))
                    client.acks(BATCH)
                except (ConnectionEnded, ConnectionError):
                    break


def send_batches(doors: Sequence[Address], stop: threading.Event) -> None:
    """Send likewise."""
    while not stop.is_set():
        with closing(WireClient(PubSubClient.open(random.choice(doors)).socket)) as client:
            name, numbers = next(_connections), itertools.count(1)
            while not stop.wait(0.002):
                said_at = time.monotonic()
                batch = [
                    (n, TIMEOUT_MS, TOPICS[n % len(TOPICS)], f"{name} {n} {said_at}")
                    for n in itertools.islice(numbers, BATCH)
                ]
                try:
                    client.write(b"".join(raw_call(*map(packed, (":send!", *each))) for each in batch))
                    if any(result is not True for _, _, result in client.replies(BATCH)):
                        break  # it drains, or nobody listened
                except (ConnectionEnded, ConnectionError):
                    break


class Listener:
    """Subscribes to all topics until told to stop, over another connection when one is closed."""

    def __init__(self, doors: Sequence[Address], stop: threading.Event) -> None:
        self._doors = doors
        self._stop = stop
        self.heard = 0
        self.overtaken: list[tuple[bytes, bytes, int, int]] = []  # by what was said later

    def run(self) -> None:
        while not self._stop.is_set():
            with closing(PubSubClient.open(random.choice(self._doors))) as client:
                try:
                    client.subscribe(*map(str.encode, TOPICS))
                except (ConnectionEnded, ConnectionError):
                    continue
                since = time.monotonic()
                last: dict[tuple[bytes, bytes], int] = {}
                while not client.ended and not self._stop.wait(0.002):
                    for topic, payload, _ in client.arrived():
                        name, number, said_at = payload.split()
                        if int(number) <= last.get((topic, name), 0) and float(said_at) > since:
                            self.overtaken.append((topic, name, last[topic, name], int(number)))
                        last[topic, name] = int(number)
                        self.heard += 1


class Running(NamedTuple):
    """Nodes that are reloaded one after the other."""

    pubsub: Sequence[Address]
    junction: Sequence[Address]
    reload: Callable[[], None]
    """Reload the next one, and wait until that is done."""


@contextmanager
def one_node() -> Iterator[Running]:
    [port] = free_ports(1)
    settings = ["--pubsub", f"--pubsub-port={port}"]
    with node(workers=2, drain_timeout_s=0.5, settings=settings, command=FAULTY) as running:
        host = "127.0.0.1"
        yield Running([(host, port)], [(host, running.port)], lambda: reload(running, within=20.0))


@contextmanager
def three_nodes() -> Iterator[Running]:
    with PubSubCluster(3, workers=2, drain_timeout_s=0.5) as cluster:
        cluster.start()
        pubsub = [cluster.pubsub.address(each) for each in cluster.nodes]
        junction = [(each.machine.address, each.port) for each in cluster.nodes]
        turns = itertools.cycle(cluster.nodes)
        yield Running(pubsub, junction, lambda: reload_one(next(turns)))


def reload_one(of_cluster: ClusterNode) -> None:
    before = of_cluster.log.count("event=reloaded")
    os.kill(of_cluster.pid, signal.SIGHUP)
    eventually(lambda: of_cluster.log.count("event=reloaded") > before, 20.0)


@pytest.mark.timeout(time_factor() * (120 + RELOADS * 20 + DELIVERIES / LEAST_RATE))
@pytest.mark.parametrize("nodes", [one_node, three_nodes])
@pytest.mark.parametrize("speak", [publish_batches, send_batches])
def test_nothing_is_overtaken_while_workers_are_replaced(
    speak: Callable[[Sequence[Address], threading.Event], None],
    nodes: Callable[[], AbstractContextManager[Running]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The worker that is replaced takes calls for a while after others know of its successor.
    monkeypatch.setenv("FAULTY_NODE_LATE", "0.05")
    stop = threading.Event()
    with nodes() as running:
        listeners = [Listener(running.pubsub, stop) for _ in range(2)]
        spoken_at = running.pubsub if speak is publish_batches else running.junction
        threads = [threading.Thread(target=speak, args=(spoken_at, stop)) for _ in range(4)]
        threads += [threading.Thread(target=listener.run) for listener in listeners]
        for thread in threads:
            thread.start()
        try:
            for number in range(1, RELOADS + 1):
                running.reload()
                share = DELIVERIES * number / RELOADS
                eventually(
                    lambda share=share: sum(each.heard for each in listeners) >= share, 20.0 + share / LEAST_RATE
                )
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    overtaken = [each for listener in listeners for each in listener.overtaken]
    print(f"{sum(each.heard for each in listeners)} deliveries, {RELOADS} reloads, {len(overtaken)} out of order")
    assert all(listener.heard for listener in listeners)
    assert overtaken == []
