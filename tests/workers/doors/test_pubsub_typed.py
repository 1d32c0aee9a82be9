"""What a publisher says of its payload, a hint and that it is compressed, and who gets to know that."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable

import pytest

from tests.workers.pubsub_bus import Bus, Doors
from tests.workers.pubsub_client import publish, publish_typed

PAYLOAD = b"payload " * 50
SQUEEZED = zlib.compress(PAYLOAD)
LONGEST = zlib.compress(bytes(65_524), 0)
assert len(LONGEST) == 65_535

Published = tuple[Callable[[bytes], bytes], bytes, bytes, bytes]

# How it is published, by topic; the form and the payload that a typed subscriber gets, and the plain payload.
PUBLISHED: dict[str, Published] = {
    "plain": (lambda topic: publish(topic, PAYLOAD), b"\x00\x00", PAYLOAD, PAYLOAD),
    "with a hint": (lambda topic: publish_typed(topic, 42, 0, PAYLOAD), b"\x2a\x00", PAYLOAD, PAYLOAD),
    "compressed": (lambda topic: publish_typed(topic, 255, 1, SQUEEZED), b"\xff\x01", SQUEEZED, PAYLOAD),
    "compressed, unknown flags": (lambda topic: publish_typed(topic, 0, 255, SQUEEZED), b"\x00\xff", SQUEEZED, PAYLOAD),
    "other flags": (lambda topic: publish_typed(topic, 1, 254, SQUEEZED), b"\x01\xfe", SQUEEZED, SQUEEZED),
    "empty": (lambda topic: publish_typed(topic, 9, 0, b""), b"\x09\x00", b"", b""),
    "empty, compressed": (
        lambda topic: publish_typed(topic, 9, 1, zlib.compress(b"")),
        b"\x09\x01",
        zlib.compress(b""),
        b"",
    ),
    "all that fits": (
        lambda topic: publish_typed(topic, 1, 1, zlib.compress(b"z" * 65_535)),
        b"\x01\x01",
        zlib.compress(b"z" * 65_535),
        b"z" * 65_535,
    ),
    "as long as it may be": (lambda topic: publish_typed(topic, 9, 1, LONGEST), b"\x09\x01", LONGEST, bytes(65_524)),
}


@pytest.mark.parametrize("way", PUBLISHED)
def test_everybody_gets_it_in_the_form_that_they_know(bus: Bus, doors: Doors, way: str) -> None:
    message, form, typed_payload, payload = PUBLISHED[way]
    fits_a_frame = len(payload) < 65_000
    publishers, plain, typed = doors.everywhere(), doors.everywhere(), doors.everywhere()
    junction = [doors.junction(place) for place in range(len(bus))]
    for owner in range(len(bus)):
        topic = bus.topic(owner)
        name = topic.encode()
        for at in range(len(bus)):
            plain[at].subscribe(name)
            typed[at].subscribe(name, typed=True)
            if fits_a_frame:
                assert junction[at].ask(":subscribe", "s", topic) is True
        for publisher in publishers:
            if fits_a_frame:
                for client in junction:
                    client.call(":recv!", 1, 60_000, topic)
                wait_for_receivers(doors, topic, len(bus))
            publisher.write(message(name))
            publisher.acks(1)
            for at in range(len(bus)):
                assert plain[at].message() == (name, payload, b"")
                assert typed[at].message() == (name, typed_payload, form)
                if fits_a_frame:
                    both = sorted(junction[at].replies(2))
                    assert both == [[":message", "s", payload], [":recv!", 1, payload]]
        for at in range(len(bus)):
            plain[at].unsubscribe(name)
            typed[at].unsubscribe(name)
            if fits_a_frame:
                assert junction[at].ask(":unsubscribe", 2, "s") is True
    assert not any(client.has_input(0.01) for client in (*publishers, *plain, *typed))
    assert not any(client.has_input(0.01) for client in junction)


def wait_for_receivers(doors: Doors, topic: str, count: int) -> None:
    with doors.junction() as census:
        census.wait_until(topic, receivers=count)


def test_subscribing_again_changes_only_the_form(bus: Bus, doors: Doors) -> None:
    for owner, client in itertools.product(range(len(bus)), doors.everywhere()):
        topic = bus.topic(owner)
        name = topic.encode()
        for typed in (False, True, True, False, True):
            client.subscribe(name, typed=typed)
            client.write(publish_typed(name, 5, 1, SQUEEZED))
            client.acks(1)
            wanted = (name, SQUEEZED, b"\x05\x01") if typed else (name, PAYLOAD, b"")
            assert client.message() == wanted
        client.unsubscribe(name)
        client.publish(name, b"nobody")
        assert not client.has_input()
