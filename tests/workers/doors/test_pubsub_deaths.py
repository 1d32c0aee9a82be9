"""A worker that is killed: what is published goes on, and whoever listened through it is counted no more."""

from __future__ import annotations

import signal

from tests.workers.pubsub_bus import doors_of
from tests.workers.pubsub_client import PubSubClient
from tests.workers.staged import simulated


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
