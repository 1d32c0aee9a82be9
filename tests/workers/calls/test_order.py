"""Reloads under load: what one connection publishes to a topic, or sends there, arrives in its order.

One case is let pass. A value that was given to a subscriber who is lost before it has that is offered again, and may
come behind later ones to whoever has subscribed since: so a send that is older than the subscription is not judged.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.helpers import CLOCK
from tests.workers.pubsub_client import PubSubClient, publish
from tests.workers.staged import Node, simulated, simulated_nodes
from tests.workers.wire_client import ConnectionEnded, WireClient, packed, raw_call

RELOADS = 3

TOPICS = [f"topic-{n}" for n in range(8)]
BATCH = 64
"""What a connection says at once."""

PAUSE_S = 0.02

TIMEOUT_MS = 2000
"""Of a send: less than a test waits for replies, since nobody listens any more at the end."""


class Speaker:
    """Says a batch when the one before is answered, and over another connection when one is closed."""

    names = itertools.count()

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._client: PubSubClient | None = None

    def say(self, client: PubSubClient, name: int, numbers: list[int]) -> None:
        """Say so many things."""
        client.write(b"".join(publish(TOPICS[n % len(TOPICS)].encode(), b"%d %d inf" % (name, n)) for n in numbers))

    def hear(self, client: PubSubClient) -> None:
        """Wait until they are answered. Raises ConnectionError for a connection that is to be used no more."""
        client.acks(BATCH)

    def door(self) -> PubSubClient:
        """Return a new connection."""
        return PubSubClient.open(random.choice(self._nodes).pubsub)

    def go_on(self) -> None:
        """Say a batch."""
        with self._until_it_is_lost():
            if self._client is None:
                self._name, self._numbers = next(Speaker.names), itertools.count(1)
                self._client = self.door()
            self.say(self._client, self._name, [*itertools.islice(self._numbers, BATCH)])

    def listen(self) -> None:
        """Wait for what is answered to it."""
        if self._client is not None:
            with self._until_it_is_lost():
                self.hear(self._client)

    @contextlib.contextmanager
    def _until_it_is_lost(self) -> Iterator[None]:
        try:
            yield
        except (ConnectionEnded, ConnectionError):
            if self._client is not None:
                self._client.close()
            self._client = None


class Sender(Speaker):
    """Sends likewise."""

    def door(self) -> PubSubClient:
        return PubSubClient.open(random.choice(self._nodes).address)

    def say(self, client: PubSubClient, name: int, numbers: list[int]) -> None:
        self._wire = WireClient(client.socket)
        said_at = CLOCK.monotonic()
        batch = [(n, TIMEOUT_MS, TOPICS[n % len(TOPICS)], f"{name} {n} {said_at}") for n in numbers]
        client.write(b"".join(raw_call(*map(packed, (":send!", *each))) for each in batch))

    def hear(self, client: PubSubClient) -> None:
        if any(result is not True for _, _, result in self._wire.replies(BATCH)):
            raise ConnectionError("it drains, or nobody listened")


class Listener:
    """Subscribes to all topics, and does so again over another connection when one is closed."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._client: PubSubClient | None = None
        self._since = 0.0
        self._last: dict[tuple[bytes, bytes], int] = {}
        self.heard = 0
        self.overtaken: list[tuple[bytes, bytes, int, int]] = []  # by what was said later

    def look(self) -> None:
        """Take in what has come."""
        if self._client is None:
            client = PubSubClient.open(random.choice(self._nodes).pubsub)
            try:
                client.subscribe(*map(str.encode, TOPICS))
            except (ConnectionEnded, ConnectionError):
                client.close()
                return
            self._client, self._since, self._last = client, CLOCK.monotonic(), {}
        for topic, payload, _ in self._client.arrived():
            name, number, said_at = payload.split()
            if int(number) <= self._last.get((topic, name), 0) and float(said_at) > self._since:
                self.overtaken.append((topic, name, self._last[topic, name], int(number)))
            self._last[topic, name] = int(number)
            self.heard += 1
        if self._client.ended:
            self._client.close()
            self._client = None


@contextlib.contextmanager
def one_node() -> Iterator[list[Node]]:
    with simulated(2, drain_timeout_s=0.5, harmed=True) as node:
        yield [node]


def three_nodes() -> AbstractContextManager[list[Node]]:
    return simulated_nodes(3, drain_timeout_s=0.5)


@pytest.mark.parametrize("nodes", [one_node, three_nodes])
@pytest.mark.parametrize("kind", [Speaker, Sender])
def test_nothing_is_overtaken_while_workers_are_replaced(
    kind: type[Speaker], nodes: Callable[[], AbstractContextManager[list[Node]]]
) -> None:
    with nodes() as running:
        listeners = [Listener(running) for _ in range(2)]
        speakers = [kind(running) for _ in range(4)]

        def take_turns() -> None:
            for listener in listeners:
                listener.look()
            for speaker in speakers:
                speaker.go_on()
            for speaker in speakers:
                speaker.listen()
            CLOCK.sleep(PAUSE_S * random.random())

        for number in range(RELOADS):
            running[number % len(running)].begin_reload()
            while any(node.reloads for node in running):
                take_turns()
        heard = [listener.heard for listener in listeners]
        for _ in range(3):
            take_turns()
        assert all(listener.heard > before > BATCH for listener, before in zip(listeners, heard, strict=True))
        assert [each for listener in listeners for each in listener.overtaken] == []
