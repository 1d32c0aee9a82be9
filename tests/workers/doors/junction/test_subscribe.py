"""Subscriptions of MessagePack clients: `[":subscribe", id, topic]`, then `[":message", id, value]` for each value."""

from __future__ import annotations

import itertools
from typing import Any

import msgpack

from tests.workers.pubsub_bus import Bus, Doors
from tests.workers.wire_client import WireClient, packed, raw_call, refusal

NOBODY = {"receivers": 0, "takers": {}, "senders": 0, "subscribers": 0, "age": 0}


def everywhere(bus: Bus, doors: Doors) -> list[WireClient]:
    """Return a MessagePack connection to each place."""
    return [doors.junction(place) for place in range(len(bus))]


def subscribed(client: WireClient, id: Any, topic: Any) -> None:
    assert client.ask(":subscribe", id, topic) is True


def test_a_second_subscription_of_one_id_is_refused_and_the_first_goes_on(bus: Bus, doors: Doors) -> None:
    first, second = bus.topic(0), bus.topic(len(bus) - 1)
    client, sender = doors.junction(), doors.junction()
    subscribed(client, 7, first)
    for topic in (first, second):
        client.call(":subscribe", 7, topic)
        error = client.refusal()
        assert (error.method, error.id, error.code) == (":subscribe", 7, "bad-id")
    assert sender.info(second)["subscribers"] == 0
    assert sender.info(first)["subscribers"] == 1
    assert sender.ask(":send!", 1, 5000, first, "value") is True
    assert client.reply() == [":message", 7, "value"]
    # Once it has ended, the id is free, and at once.
    client.call(":unsubscribe", 1, 7)
    client.call(":subscribe", 7, second)
    assert client.replies(2) == [[":unsubscribe", 1, True], [":subscribe", 7, True]]


def test_two_subscriptions_of_one_connection_to_one_topic_are_two(bus: Bus, doors: Doors) -> None:
    for owner, client in enumerate(everywhere(bus, doors)):
        topic = bus.topic((owner + 1) % len(bus))
        subscribed(client, "one", topic)
        subscribed(client, "two", topic)
        assert client.info(topic)["subscribers"] == 2
        assert doors.junction().ask(":send!", 1, 5000, topic, "value") is True
        assert sorted(client.replies(2)) == [[":message", "one", "value"], [":message", "two", "value"]]
        assert client.ask(":unsubscribe", 1, "one") is True
        assert doors.junction().ask(":send!", 1, 5000, topic, "value") is True
        assert client.reply() == [":message", "two", "value"]
        assert client.info(topic)["subscribers"] == 1


def test_messages_never_come_before_the_answer(bus: Bus, doors: Doors) -> None:
    for client, sender in itertools.product(everywhere(bus, doors), everywhere(bus, doors)):
        topic = bus.topic()
        for number in range(5):
            sender.call(":send!", number, 60_000, topic, number)
        client.wait_until(topic, senders=5)
        client.call(":subscribe", "s", topic)
        sender.call(":send!", 5, 60_000, topic, 5)
        assert client.reply() == [":subscribe", "s", True]
        assert sorted(client.replies(6)) == [[":message", "s", number] for number in range(6)]
        assert [result for _, _, result in sender.replies(6)] == [True] * 6
        assert client.ask(":unsubscribe", 1, "s") is True


def test_bad_subscribes_are_refused(doors: Doors) -> None:
    client = doors.junction()
    for elements, code in [
        ((":subscribe", 1), "bad-arity"),
        ((":subscribe", 1, "t", "more"), "bad-arity"),
        ((":unsubscribe", 1), "bad-arity"),
        ((":unsubscribe", 1, 2, 3), "bad-arity"),
        ((":subscribe", "i" * 40, "t"), "bad-id"),
        ((":unsubscribe", "i" * 40, "t"), "bad-id"),
        ((":subscribe", 1, "t" * 4100), "bad-topic"),
        ((":message", 1, "t"), "unknown-method"),
    ]:
        client.call(*elements)
        assert client.refusal().code == code
    assert client.ask(":unsubscribe", 1, "never made") is False
    assert client.info("t") == NOBODY


def test_a_value_that_fits_no_frame_with_its_id_is_an_error_and_no_silence(bus: Bus, doors: Doors) -> None:
    # A send has less around its value than a message with a long id.
    topic, long_id = bus.topic(len(bus) - 1), "i" * 31
    short = doors.junction()
    overhead = len(raw_call(packed(":send!"), b"\x01", b"\x00", packed(topic), packed(b"x" * 60_000))) - 60_000 - 2
    value = b"x" * (65_535 - overhead)
    for client in everywhere(bus, doors):
        subscribed(client, long_id, topic)
        client.call(":send!", 1, 0, topic, value)
        answers = client.replies(2)
        (error,) = (refusal(each) for each in answers if each[0] == ":message")
        assert (error.id, error.code) == (long_id, "too-large")
        assert [each for each in answers if each[0] != ":message"] == [[":send!", 1, msgpack.ExtType(0x54, b"\0")]]
        # It is still subscribed, and who has a shorter id gets it.
        subscribed(short, 1, topic)
        assert client.ask(":unsubscribe", 2, "nothing") is False
        client.call(":send!", 3, 100, topic, value)
        assert sorted(each[0] for each in client.replies(2)) == [":message", ":send!"]
        assert short.reply() == [":message", 1, value]
        assert short.ask(":unsubscribe", 1, 1) is True
        assert client.ask(":unsubscribe", 4, long_id) is True
