"""The pub/sub door, by raw bytes: on one worker or several, of one node or of a cluster, alike."""

from __future__ import annotations

import itertools
import random

from tests.workers.pubsub_bus import Bus, Doors
from tests.workers.pubsub_client import ACK, Message, PubSubClient, publish, subscribe, unsubscribe


def numbered(publisher: int, number: int) -> bytes:
    return b"%d %d" % (publisher, number)


class TestTheOriginalsScenario:
    def test_one_subscriber_byte_for_byte(self, bus: Bus, doors: Doors) -> None:
        publishers, subscribers = doors.everywhere(), doors.everywhere()
        for owner, publisher, subscriber in itertools.product(range(len(bus)), publishers, subscribers):
            topic = bus.topic(owner).encode()
            name = bytes((len(topic),)) + topic
            subscriber.write(b"\x02" + name)
            assert subscriber.read(1) == b"\x04"
            publisher.write(b"\x01" + name + b"\x0b\x00It's broke.")
            assert publisher.read(1) == b"\x04"
            assert subscriber.read(1 + len(name) + 2 + 11) == b"\x01" + name + b"\x0b\x00It's broke."
            subscriber.write(b"\x03" + name)
            assert subscriber.read(1) == b"\x04"
        assert not any(client.has_input(0.01) for client in (*publishers, *subscribers))


def test_sizes_of_payloads_and_topics(bus: Bus, doors: Doors) -> None:
    publisher, subscriber = doors.pubsub(0), doors.pubsub(len(bus) - 1)
    for size, length in itertools.product([0, 1, 255, 256, 65_534, 65_535], [0, 1, 31, 32, 254, 255]):
        topic, payload = b"t" * length, random.Random(size).randbytes(size)
        subscriber.subscribe(topic)
        publisher.publish(topic, payload)
        assert subscriber.message() == (topic, payload, b"")
        subscriber.unsubscribe(topic)


def test_a_publisher_hears_the_ack_before_its_own_copy(bus: Bus, doors: Doors) -> None:
    clients = doors.everywhere() + doors.everywhere()
    for topic in map(str.encode, bus.topics(2 * len(bus))):
        for client in clients:
            client.subscribe(topic)
        for number, client in enumerate(clients):
            copy = publish(topic, numbered(number, 0))
            client.write(copy)
            assert client.read(len(ACK + copy)) == ACK + copy
            others = [each for each in clients if each is not client]
            assert [each.read(len(copy)) for each in others] == [copy] * len(others)


def test_a_subscription_that_comes_and_goes_and_comes_is_one(bus: Bus, doors: Doors) -> None:
    census = doors.junction()
    for owner, client in itertools.product(range(len(bus)), doors.everywhere()):
        topic = bus.topic(owner)
        name = topic.encode()
        for _ in range(20):
            # One by one: while some are on their way to the owner, others come.
            client.write(subscribe(name))
            client.write(unsubscribe(name))
        client.write(subscribe(name))
        client.acks(41)
        assert census.info(topic)["subscribers"] == 1
        client.publish(name, b"once")
        assert client.message() == Message(name, b"once")
        client.unsubscribe(name)
        assert census.info(topic)["subscribers"] == 0
        assert not client.has_input()


def test_a_subscriber_that_leaves_is_not_counted(bus: Bus, doors: Doors) -> None:
    for owner in range(len(bus)):
        topic = bus.topic(owner)
        census = doors.junction((owner + 1) % len(bus))
        for leave in (PubSubClient.close, PubSubClient.reset, PubSubClient.end_own_half):
            leaving = doors.everywhere() + doors.everywhere()
            for number, client in enumerate(leaving, 1):
                client.subscribe(topic.encode())
                assert census.info(topic)["subscribers"] == number
            for client in leaving:
                leave(client)
            census.wait_until(topic, subscribers=0)
            for client in leaving:
                client.close()
        for number, client in enumerate(leaving := doors.everywhere(), 1):
            client.subscribe(topic.encode())
            assert census.info(topic)["subscribers"] == number
        for number, client in enumerate(leaving, 1):
            client.unsubscribe(topic.encode())
            assert census.info(topic)["subscribers"] == len(leaving) - number
