"""Pub/sub and MessagePack are one bus: what the one sends, the other gets, and counts as a listener."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workers.pubsub_bus import Bus, Doors
from tests.workers.wire_client import TIMED_OUT, packed

LONG = 60_000


def places(bus: Bus) -> Iterator[tuple[int, int, int]]:
    """Yield telling combinations of the places of who sends, of who gets it and of who owns the topic."""
    last = len(bus) - 1
    some = dict.fromkeys((0, min(1, last), last // 2, last))
    yield from itertools.product(some, some, some)


class TestPublished:
    @pytest.mark.parametrize("payload", [b"", b"payload", b"\xff" * 300], ids=["empty", "short", "long"])
    def test_reaches_all_receivers_and_one_taker_of_each_group_as_bin(
        self, bus: Bus, doors: Doors, payload: bytes
    ) -> None:
        publishers = doors.everywhere()
        receivers = [doors.junction(place) for place in range(len(bus))]
        takers = [doors.junction(place) for place in range(len(bus))]
        census = doors.junction()
        for owner, publisher in itertools.product(range(len(bus)), publishers):
            topic = bus.topic(owner)
            for receiver in receivers:
                receiver.call(":recv!", 1, LONG, topic)
                receiver.call(":recv!", 2, LONG, "of the first dialect", topic)
            for taker in takers:
                for group in ("red", "blue"):
                    taker.call(":take!", group, LONG, topic, group)
            census.wait_until(topic, receivers=2 * len(bus), takers={"red": len(bus), "blue": len(bus)})
            publisher.publish(topic.encode(), payload)
            for receiver in receivers:
                assert sorted(receiver.replies(2)) == [[":recv!", 1, payload], [":recv!", 2, payload]]
            census.wait_until(topic, receivers=0)
            left = {group: len(bus) - 1 for group in ("red", "blue") if len(bus) > 1}
            census.wait_until(topic, takers=left)
            for taker in takers:
                taker.call(":cancel", "c", "red")
                taker.call(":cancel", "c", "blue")
            answers = [taker.reply() for taker in takers for _ in range(4)]
            assert sorted(each for each in answers if each[2] == payload and each[0] == ":take!") == [
                [":take!", "blue", payload],
                [":take!", "red", payload],
            ]
            census.wait_until(topic, receivers=0, takers={}, senders=0, subscribers=0)

    def test_a_payload_that_fits_no_reply_passes_by_who_waits_for_one_and_reaches_the_others(
        self, bus: Bus, doors: Doors
    ) -> None:
        payload = b"p" * 65_535
        for here, there, owner in places(bus):
            topic = bus.topic(owner)
            receiver, subscriber, native = doors.junction(there), doors.pubsub(there), doors.junction(there)
            assert native.ask(":subscribe", 1, topic) is True
            receiver.call(":recv!", 1, LONG, topic)
            doors.junction(owner).wait_until(topic, receivers=1)
            subscriber.subscribe(topic.encode())
            doors.pubsub(here).publish(topic.encode(), payload)
            assert subscriber.message().payload == payload
            doors.junction(owner).wait_until(topic, receivers=1)
            doors.pubsub(here).publish(topic.encode(), b"short")
            assert receiver.reply() == [":recv!", 1, b"short"]
            error = native.refusal()
            assert (error.method, error.id, error.code) == (":message", 1, "too-large")

    @pytest.mark.parametrize("name", [b"", b"utf-8 \xc3\xa9", b"t" * 31, b"t" * 32, b"t" * 255, "é".encode() * 127])
    def test_a_topic_is_the_string_of_its_bytes(self, bus: Bus, doors: Doors, name: bytes) -> None:
        self.assert_one_topic(bus, doors, name, name.decode())

    @pytest.mark.parametrize("name", [b"\xff", b"\xc3", b"t" * 31 + b"\x80", b"\xff" * 255])
    def test_a_topic_that_is_no_utf_8_is_the_binary_of_its_bytes(self, bus: Bus, doors: Doors, name: bytes) -> None:
        self.assert_one_topic(bus, doors, name, name)

    def assert_one_topic(self, bus: Bus, doors: Doors, name: bytes, topic: str | bytes) -> None:
        for place in range(len(bus)):
            client, other = doors.pubsub(place), doors.junction((place + 1) % len(bus))
            other.call(":recv!", 1, LONG, topic)
            doors.junction(place).wait_until(topic, receivers=1)
            client.publish(name, b"there")
            assert other.reply() == [":recv!", 1, b"there"]
            client.subscribe(name)
            assert other.ask(":send!", 2, 5000, topic, "back") is True
            assert client.message() == (name, b"back", b"")
            client.unsubscribe(name)

    def test_a_binary_that_is_utf_8_is_no_topic_of_pub_sub(self, bus: Bus, doors: Doors) -> None:
        client, other = doors.pubsub(), doors.junction()
        client.subscribe(b"text")
        assert other.ask(":send!", 1, 0, b"text", "value") == TIMED_OUT
        assert other.ask(":send!", 1, 0, ["text"], "value") == TIMED_OUT
        assert other.ask(":send!", 1, 0, "t" * 256, "value") == TIMED_OUT
        assert not client.has_input(0.01)
        client.unsubscribe(b"text")


class TestSent:
    @pytest.mark.parametrize(
        "value",
        [
            None, True, 5, -1, 1 << 40, 1.5, "", "text", "t" * 40, "é" * 300, b"", b"bin", b"b" * 70, b"b" * 65_000,
            [], [1, "a"], {}, {"map": {"of": [None]}}, "t" * 64_000,
        ],
        ids=lambda value: repr(value)[:20],
    )  # fmt: skip
    def test_reaches_subscribers_as_bytes_and_is_answered_true_although_nobody_receives(
        self, bus: Bus, doors: Doors, value: Any
    ) -> None:
        match value:
            case str():
                payload = value.encode()
            case bytes():
                payload = value
            case _:
                payload = packed(value)
        for here, there, owner in places(bus):
            topic = bus.topic(owner)
            name = topic.encode()
            plain, typed, sender = doors.pubsub(there), doors.pubsub(there), doors.junction(here)
            plain.subscribe(name)
            typed.subscribe(name, typed=True)
            assert sender.ask(":send!", 1, 5000, topic, value) is True
            assert sender.ask(":send!", 2, 5000, "of the first dialect", topic, value) is True
            assert plain.messages(2) == [(name, payload, b"")] * 2
            assert typed.messages(2) == [(name, payload, b"\x00\x00")] * 2
            plain.close()
            typed.close()
            sender.close()
