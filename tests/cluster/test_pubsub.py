"""Pub/sub over nodes of which one dies: whom it counts, and what it acks. Random runs show all else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import eventually
from tests.workers.pubsub_bus import Doors, doors_of
from tests.workers.pubsub_client import publish
from tests.workers.staged import Node, bus_of, simulated_nodes

OUT_S = 1.0
"""Seconds until the others are without a node that was killed."""


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    with simulated_nodes(3) as nodes:
        yield nodes


@pytest.fixture
def doors(nodes: list[Node]) -> Iterator[Doors]:
    with doors_of(bus_of(nodes)) as doors:
        yield doors


def kill(node: Node) -> None:
    """End all its processes at once, as when the power fails."""
    node._node.die(back_s=1000.0, loses_power=False)


def test_what_is_published_to_a_topic_whose_owner_dies_is_acked(nodes: list[Node], doors: Doors) -> None:
    topics = [doors._bus.topic(4).encode() for _ in range(20)]
    publishers = [doors.pubsub(0), doors.pubsub(2)]
    for publisher in publishers:
        publisher.publish(topics[0], b"so that they are connected")
    kill(nodes[2])
    for publisher in publishers:
        publisher.write(b"".join(publish(topic, b"payload") for topic in topics))
    for publisher in publishers:
        publisher.acks(len(topics), within=12)


def test_subscribers_are_counted_over_nodes_and_not_when_their_node_is_gone(nodes: list[Node], doors: Doors) -> None:
    topics = [doors._bus.topic(owner) for owner in range(4)]
    clients = doors.everywhere() + doors.everywhere()
    for client in clients:
        client.subscribe(*(topic.encode() for topic in topics))
    census = doors.junction(0)
    assert [census.info(topic)["subscribers"] for topic in topics] == [12] * 4
    kill(nodes[2])
    eventually(lambda: [census.info(topic)["subscribers"] for topic in topics] == [8] * 4, OUT_S)
    eventually(lambda: nodes[0].ring() + nodes[1].ring() == [2] * 4, OUT_S)
    for topic in topics:
        doors.pubsub(2).publish(topic.encode(), b"once")
    for client in clients[:4] + clients[6:10]:
        assert sorted(message.topic.decode() for message in client.messages(4)) == sorted(topics)
        assert not client.has_input(0.01)
