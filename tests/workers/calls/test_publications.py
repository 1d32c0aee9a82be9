"""Pub/sub over nodes that are moved by hand: what was acked is true, whatever the ring does between ask and answer."""

from __future__ import annotations

import contextlib
import random
import time
import zlib
from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK, time_factor
from tests.workers.pubsub_client import ACK, PubSubClient, publish, publish_typed, subscribe, unsubscribe
from tests.workers.several_nodes import SeveralNodes, several
from tests.workers.wire_client import TIMED_OUT

ANSWERED_S = 5.0
NUMBER = 4
"""Bytes of a payload that is a number."""


@pytest.fixture(autouse=True)
def _nobody_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nodes have their turns when the test says so, which on a busy machine may be too late for one that is doubted.
    monkeypatch.setattr("workers.nodes.probe.ANSWER_S", 60.0)


class Clients:
    """Connections to the pub/sub doors of some nodes."""

    def __init__(self, nodes: SeveralNodes) -> None:
        self._nodes = nodes
        self._open: list[PubSubClient] = []

    def __call__(self, name: str) -> PubSubClient:
        self._open.append(self._nodes.nodes[name].pubsub())
        return self._open[-1]

    def close(self) -> None:
        for client in self._open:
            client.close()


@pytest.fixture
def nodes() -> Iterator[SeveralNodes]:
    with several("a", "b", "c") as nodes:
        yield nodes


@pytest.fixture
def connect(nodes: SeveralNodes) -> Iterator[Clients]:
    with contextlib.closing(Clients(nodes)) as clients:
        yield clients


def until(nodes: SeveralNodes, client: PubSubClient, expected: bytes) -> None:
    """Let the nodes work until the client has these bytes, and no others."""
    deadline = CLOCK.monotonic() + ANSWERED_S * time_factor()
    got = b""
    while len(got) < len(expected):
        assert CLOCK.monotonic() < deadline, f"only {got!r} of {expected!r} came in time"
        for node in nodes.nodes.values():
            node.turn()
        while client.has_input():
            data = client.socket.recv(65536)
            assert data, f"the node closed the connection after {got!r}"
            got += data
    assert got == expected


def acquaint(nodes: SeveralNodes, connect: Clients, asks: str, owner: str, ring: str) -> PubSubClient:
    """Have one node make its link to another; return the client that had it do so."""
    client = connect(asks)
    client.write(publish(nodes.topic_of(owner, ring).encode(), b""))
    until(nodes, client, ACK)
    return client


def test_what_is_published_behind_a_subscribe_comes_although_the_topic_moves_here_in_between(
    nodes: SeveralNodes, connect: Clients
) -> None:
    nodes.follow("ab")
    topic = nodes.topic_of("b", "ab").encode()
    client = acquaint(nodes, connect, "a", "b", "ab")
    client.write(subscribe(topic))
    nodes.nodes["a"].turn()
    nodes.follow("a", by="a")  # which first has the old owner say that nothing more comes from there
    client.write(publish(topic, b"hi"))
    nodes.nodes["a"].turn()
    assert not client.has_input()
    until(nodes, client, ACK + ACK + publish(topic, b"hi"))


def test_an_unsubscribe_behind_a_subscribe_ends_it_although_the_topic_moves_here_in_between(
    nodes: SeveralNodes, connect: Clients
) -> None:
    nodes.follow("ab")
    topic = nodes.topic_of("b", "ab").encode()
    client = acquaint(nodes, connect, "a", "b", "ab")
    client.write(subscribe(topic))
    nodes.nodes["a"].turn()
    nodes.follow("a", by="a")
    client.write(unsubscribe(topic))
    until(nodes, client, ACK + ACK)
    client.write(publish(topic, b"to nobody"))
    until(nodes, client, ACK)
    client.write(subscribe(topic) + publish(topic, b"once"))
    until(nodes, client, ACK + ACK + publish(topic, b"once"))


@pytest.mark.parametrize("size", [0, 1, 65_533, 65_534, 65_535])
def test_a_compressed_payload_of_any_size_reaches_another_node(
    nodes: SeveralNodes, connect: Clients, size: int
) -> None:
    nodes.follow("ab")
    data = random.Random(1).randbytes(max(0, size - 11))
    compressed = zlib.compress(data, 0)
    assert len(compressed) == max(11, size)
    topic = nodes.topic_of("b", "ab").encode()
    plain, typed, publisher = connect("a"), connect("a"), connect("a")
    plain.write(subscribe(topic))
    typed.write(subscribe(topic, typed=True))
    until(nodes, plain, ACK)
    until(nodes, typed, ACK)
    publisher.write(publish_typed(topic, 9, 1, compressed))
    until(nodes, publisher, ACK)
    until(nodes, plain, publish(topic, data))
    until(nodes, typed, publish_typed(topic, 9, 1, compressed))


def test_what_waits_behind_an_ack_keeps_its_order_and_a_send_that_times_out_there_is_not_written(
    nodes: SeveralNodes, connect: Clients
) -> None:
    after = {"a", "c"}
    nodes.follow("abc")
    elsewhere = nodes.topic_of("b", "abc", then=("c", after)).encode()
    topic = nodes.topic_of("a", "abc", then=("a", after))
    client, other, sender = connect("a"), connect("a"), nodes.client("a")
    client.write(subscribe(topic.encode()))
    until(nodes, client, ACK)
    nodes.kill("b")
    client.write(publish(elsewhere, b"1") + publish(topic.encode(), b"2"))
    other.write(publish(topic.encode(), b"3"))
    until(nodes, other, ACK)
    sender.call(":send!", 4, 50, topic, "4")
    sender.call(":send!", 5, 60_000, topic, "5")
    assert nodes.until_reply(sender) == [":send!", 4, TIMED_OUT]
    other.write(publish(topic.encode(), b"6"))
    until(nodes, other, ACK)
    assert not client.has_input(), "an ack before those that come first, or a message before its own"
    nodes.follow(after)
    until(nodes, client, ACK + ACK + b"".join(publish(topic.encode(), each) for each in (b"2", b"3", b"5", b"6")))
    assert nodes.until_reply(sender) == [":send!", 5, True]


def test_what_a_send_costs_that_times_out_behind_an_ack_does_not_depend_on_how_much_waits_there(
    nodes: SeveralNodes, connect: Clients
) -> None:
    nodes.follow("abc")
    elsewhere = nodes.topic_of("b", "abc").encode()
    topic = nodes.topic_of("a", "abc")
    nodes.kill("b")
    node, home = nodes.nodes["a"], nodes.nodes["c"]
    costs = []
    for messages in (10, 20_000):
        client, other, sender = connect("a"), connect("a"), nodes.client("c")
        client.write(subscribe(topic.encode()))
        until(nodes, client, ACK)
        client.write(publish(elsewhere, b"1") + publish(topic.encode(), b"2"))
        node.turn()
        for _ in range(messages // 10):
            other.write(publish(topic.encode(), b"3") * 10)
            node.turn()
            other.acks(10)
        for number in range(1000):
            sender.call(":send!", number, 60_000, topic, "4")
            home.turn()
        nodes.turn()
        home.turn(later=61.0)
        began = time.thread_time()
        while not sender.has_input():
            node.turn()
            home.turn()
        costs.append(time.thread_time() - began)
        assert all(reply[2] == TIMED_OUT for reply in sender.replies(1000))
        client.reset()
        nodes.turn()
    assert costs[1] < 3 * costs[0] + 0.02


def test_a_send_to_a_subscriber_that_leaves_with_it_behind_an_ack_waits_for_another(
    nodes: SeveralNodes, connect: Clients
) -> None:
    nodes.follow("abc")
    elsewhere = nodes.topic_of("b", "abc").encode()
    topic = nodes.topic_of("a", "abc")
    client, sender, receiver = connect("a"), nodes.client("a"), nodes.client("a")
    client.write(subscribe(topic.encode()))
    until(nodes, client, ACK)
    nodes.kill("b")
    client.write(publish(elsewhere, b"1") + publish(topic.encode(), b"2"))
    nodes.turn()
    sender.call(":send!", 3, 60_000, topic, "3")
    nodes.turn()
    assert not sender.has_input()
    client.reset()
    receiver.call(":recv!", 4, 60_000, topic)
    assert nodes.until_reply(receiver) == [":recv!", 4, "3"]
    assert nodes.until_reply(sender) == [":send!", 3, True]
