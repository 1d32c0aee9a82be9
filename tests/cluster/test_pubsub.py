"""Nodes that come, go and die while many listen and publish: once it has settled, nothing is missed or comes twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.clusters import ClusterNode
from tests.helpers import eventually
from tests.workers.pubsub_bus import Doors, PubSubCluster, doors_of
from tests.workers.pubsub_client import PubSubClient, publish
from tests.workers.pubsub_crowd import Crowd
from tests.workers.wire_client import Address

SETTLE_S = 15.0


def doors(cluster: PubSubCluster) -> list[Address]:
    """Return the pub/sub doors of the nodes that live."""
    return [cluster.pubsub.address(node) for node in cluster.live]


def is_settled(cluster: PubSubCluster, crowd: Crowd) -> bool:
    """Whether the nodes agree, and each topic has as many subscribers as there are, whoever is asked."""
    if not cluster.is_settled():
        return False
    for node in cluster.live:
        with node.client() as census:
            if any(census.info(topic)["subscribers"] != crowd.audience(topic) for topic in crowd.topics):
                return False
    return True


def killed(cluster: PubSubCluster, node: ClusterNode) -> None:
    node.kill()


def drained(cluster: PubSubCluster, node: ClusterNode) -> None:
    node.drain()


def killed_and_back(cluster: PubSubCluster, node: ClusterNode) -> None:
    node.kill()
    cluster.revive(node)


@pytest.mark.parametrize("what", [killed, drained, killed_and_back])
def test_a_crowd_on_a_cluster_of_which_a_node_is(what: Callable[[PubSubCluster, ClusterNode], None]) -> None:
    with PubSubCluster(3, workers=2, drain_timeout_s=1.0) as cluster:
        cluster.start()
        topics = cluster.bus().topics(20)
        with Crowd(topics, lambda: doors(cluster)) as crowd:
            crowd.until(lambda: is_settled(cluster, crowd), SETTLE_S)
            crowd.go_on(60)
            what(cluster, cluster.nodes[1])
            if what is drained:
                crowd.until(lambda: not cluster.nodes[1].lives, 10)
                cluster.nodes[1].wait_for_end(1)
            crowd.go_on(60)
            crowd.until(lambda: is_settled(cluster, crowd), SETTLE_S)
            crowd.assert_nothing_is_missed_from_now_on(150)
            crowd.assert_order()
        assert not any("Traceback" in node.log for node in cluster.nodes)


def test_a_crowd_on_a_cluster_that_a_node_joins() -> None:
    with PubSubCluster(3, workers=2) as cluster:
        cluster.start(*cluster.nodes[:2])
        with Crowd([f"topic-{n}" for n in range(20)], lambda: doors(cluster)) as crowd:
            crowd.until(lambda: is_settled(cluster, crowd), SETTLE_S)
            crowd.go_on(60)
            cluster.revive(cluster.nodes[2])
            crowd.go_on(60)
            crowd.until(lambda: len(cluster.live) == 3 and is_settled(cluster, crowd), SETTLE_S)
            lives = [len(subscriber.lives) for subscriber in crowd.subscribers]
            assert set(lives) == {1}, "nobody loses a connection because a node joins"
            crowd.assert_nothing_is_missed_from_now_on(150)
            crowd.assert_order()
        assert not any("Traceback" in node.log for node in cluster.nodes)


def test_what_is_published_to_a_topic_whose_owner_dies_is_acked() -> None:
    with PubSubCluster(3, workers=1) as cluster:
        cluster.start()
        bus = cluster.bus()
        with doors_of(bus) as doors:
            for publisher in (doors.pubsub(0), doors.pubsub(1)):
                publisher.publish(bus.topic(2).encode(), b"so that they are connected")
            topics = [bus.topic(2).encode() for _ in range(20)]
            cluster.nodes[2].kill()
            publishers = [doors.pubsub(0), doors.pubsub(1)]
            for publisher in publishers:
                publisher.write(b"".join(publish(topic, b"payload") for topic in topics))
            for publisher in publishers:
                publisher.acks(len(topics), within=12)


def test_subscribers_are_counted_over_nodes_and_not_when_their_node_is_gone() -> None:
    with PubSubCluster(3, workers=2) as cluster:
        cluster.start()
        bus = cluster.bus()
        with doors_of(bus) as doors:
            topics = [bus.topic(owner) for owner in range(4)]
            clients = subscribed_everywhere(doors, topics)
            census = doors.junction(0)
            assert [census.info(topic)["subscribers"] for topic in topics] == [12] * 4
            cluster.nodes[2].kill()
            eventually(lambda: [census.info(topic)["subscribers"] for topic in topics] == [8] * 4, 10)
            cluster.settle()
            for topic in topics:
                doors.pubsub(1).publish(topic.encode(), b"once")
            for client in clients[:4] + clients[6:10]:
                assert sorted(message.topic.decode() for message in client.messages(4)) == sorted(topics)
                assert not client.has_input(0.01)


def subscribed_everywhere(doors: Doors, topics: list[str]) -> list[PubSubClient]:
    """Return two clients at each place, those of the first places first, twice."""
    clients = doors.everywhere() + doors.everywhere()
    for client in clients:
        client.subscribe(*(topic.encode() for topic in topics))
    return clients
