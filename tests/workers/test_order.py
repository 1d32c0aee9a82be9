"""Reloads under load: what one connection publishes to a topic, or sends there, arrives in its order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from skywalker.cli.demo_cluster.ports import free_ports
from tests.workers.processes import FAULTY, node
from tests.workers.pubsub_client import PubSubClient, publish
from tests.workers.reloads import reload
from tests.workers.wire_client import Address, ConnectionEnded, WireClient, packed, raw_call

TOPICS = [f"topic-{n}" for n in range(8)]
BATCH = 64
"""What a connection says at once."""

_connections = itertools.count()


def publish_batches(door: Address, stop: threading.Event) -> None:
    """Publish until told to stop, and over another connection when one is closed."""
    while not stop.is_set():
        with closing(PubSubClient.open(door)) as client:
            name, numbers = next(_connections), itertools.count(1)
            while not stop.wait(0.002):
                batch = [
                    (TOPICS[n % len(TOPICS)].encode(), b"%d %d" % (name, n)) for n in itertools.islice(numbers, BATCH)
                ]
                try:
                    client.write(b"".join(publish(*each) for each in batch))
                    client.acks(BATCH)
                except (ConnectionEnded, ConnectionError):
                    break


def send_batches(door: Address, stop: threading.Event) -> None:
    """Send likewise."""
    while not stop.is_set():
        with closing(WireClient(PubSubClient.open(door).socket)) as client:
            name, numbers = next(_connections), itertools.count(1)
            while not stop.wait(0.002):
                batch = [(n, 5000, TOPICS[n % len(TOPICS)], f"{name} {n}") for n in itertools.islice(numbers, BATCH)]
                try:
                    client.write(b"".join(raw_call(*map(packed, (":send!", *each))) for each in batch))
                    if any(result is not True for _, _, result in client.replies(BATCH)):
                        break  # it drains, or nobody listened
                except (ConnectionEnded, ConnectionError):
                    break


class Listener:
    """Subscribes to all topics until told to stop, over another connection when one is closed."""

    def __init__(self, door: Address, stop: threading.Event) -> None:
        self._door = door
        self._stop = stop
        self.heard = 0
        self.overtaken: list[tuple[bytes, bytes, int, int]] = []  # by what was said later

    def run(self) -> None:
        while not self._stop.is_set():
            with closing(PubSubClient.open(self._door)) as client:
                try:
                    client.subscribe(*map(str.encode, TOPICS))
                except (ConnectionEnded, ConnectionError):
                    continue
                last: dict[tuple[bytes, bytes], int] = {}
                while not client.ended and not self._stop.wait(0.002):
                    for topic, payload, _ in client.arrived():
                        name, number = payload.split()
                        if int(number) <= last.get((topic, name), 0):
                            self.overtaken.append((topic, name, last[topic, name], int(number)))
                        last[topic, name] = int(number)
                        self.heard += 1


@pytest.mark.parametrize("speak", [publish_batches, send_batches])
def test_nothing_is_overtaken_while_workers_are_replaced(
    speak: Callable[[Address, threading.Event], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The worker that is replaced takes calls for a while after others know of its successor.
    monkeypatch.setenv("FAULTY_NODE_LATE", "0.05")
    [port] = free_ports(1)
    stop = threading.Event()
    with node(
        workers=2, drain_timeout_s=0.5, settings=["--pubsub", f"--pubsub-port={port}"], command=FAULTY
    ) as running:
        door = ("127.0.0.1", port)
        listeners = [Listener(door, stop) for _ in range(2)]
        spoken_at = door if speak is publish_batches else ("127.0.0.1", running.port)
        threads = [threading.Thread(target=speak, args=(spoken_at, stop)) for _ in range(4)]
        threads += [threading.Thread(target=listener.run) for listener in listeners]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                reload(running, within=20.0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert all(listener.heard for listener in listeners)
    assert [each for listener in listeners for each in listener.overtaken] == []
