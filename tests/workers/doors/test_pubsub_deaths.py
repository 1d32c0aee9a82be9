"""Workers that die while many listen and publish: once all are counted again, nothing is missed or comes twice."""

from __future__ import annotations

import signal

import pytest

from tests.helpers import eventually
from tests.workers.pubsub_bus import Bus, doors_of
from tests.workers.pubsub_client import PubSubClient
from tests.workers.pubsub_crowd import Crowd
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import WireClient

SETTLE_S = 8.0


def is_counted(crowd: Crowd, bus: Bus) -> bool:
    """Whether each topic has as many subscribers as there are; whichever worker is asked, its owner says so."""
    with WireClient.open(bus.places[0].junction) as census:
        return all(census.info(topic)["subscribers"] == crowd.audience(topic) for topic in crowd.topics)


def end_worker(node: Node, which: int, how: signal.Signals) -> None:
    """End one, and wait until it has a successor."""
    before = node.pids()
    node.kill(before[which], how)
    eventually(lambda: len(node.pids()) == len(before) and before[which] not in node.pids())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "drained"])
def test_a_crowd_on_a_node_whose_workers_are(how: signal.Signals) -> None:
    with simulated(4, harmed=True) as node:
        with Crowd(node.bus.topics(20), lambda: [node.pubsub]) as crowd:
            crowd.until(lambda: is_counted(crowd, node.bus), SETTLE_S)
            for which in (0, 2, 1, 3):
                crowd.go_on(60)
                end_worker(node, which, how)
            crowd.go_on(60)
            crowd.until(lambda: is_counted(crowd, node.bus), SETTLE_S)
            crowd.assert_nothing_is_missed_from_now_on(200)
            crowd.assert_order()
        assert "Traceback" not in node.log


def test_a_crowd_on_a_node_whose_workers_are_killed_at_once() -> None:
    with simulated(4, harmed=True) as node:
        with Crowd(node.bus.topics(20), lambda: [node.pubsub]) as crowd:
            crowd.until(lambda: is_counted(crowd, node.bus), SETTLE_S)
            crowd.go_on(60)
            for pid in node.pids()[:3]:
                node.kill(pid, signal.SIGKILL)
            crowd.go_on(60)
            crowd.until(lambda: is_counted(crowd, node.bus), SETTLE_S)
            crowd.assert_nothing_is_missed_from_now_on(200)
            crowd.assert_order()
        assert "Traceback" not in node.log


def test_what_waited_for_an_owner_that_was_killed_is_acked_and_a_subscriber_elsewhere_stays() -> None:
    with simulated(4, harmed=True) as node, doors_of(node.bus) as doors:
        topics = [node.bus.topic(1) for _ in range(10)]
        subscriber, publisher = doors.pubsub(2), doors.pubsub(3)
        subscriber.subscribe(*(topic.encode() for topic in topics))
        victim = node.pid_behind(doors.pubsub(1))
        node.kill(victim, signal.SIGKILL)
        for topic in topics:
            publisher.publish(topic.encode(), b"meanwhile")
        with doors_of(node.bus) as later:
            for topic in topics:
                later.junction(0).wait_until(topic, subscribers=1)
        subscriber.arrived()
        for topic in topics:
            publisher.publish(topic.encode(), b"settled")
        assert [message.topic.decode() for message in subscriber.messages(10)] == topics
        assert not subscriber.has_input(0.01)


def test_the_subscribers_of_a_worker_that_was_killed_are_not_counted() -> None:
    with simulated(4, harmed=True) as node, doors_of(node.bus) as doors:
        topics = [node.bus.topic(owner) for owner in (0, 2, 3)]
        census = doors.junction(0)
        leaving: list[PubSubClient] = [doors.pubsub(1) for _ in range(5)]
        staying = doors.pubsub(3)
        for client in (*leaving, staying):
            client.subscribe(*(topic.encode() for topic in topics))
        assert [census.info(topic)["subscribers"] for topic in topics] == [6, 6, 6]
        node.kill(node.pid_behind(leaving[0]), signal.SIGKILL)
        for client in leaving:
            client.wait_for_end()
        for topic in topics:
            census.wait_until(topic, subscribers=1)
            doors.pubsub(2).publish(topic.encode(), b"once")
        assert [message.topic.decode() for message in staying.messages(3)] == topics
        assert not staying.has_input(0.01)
