"""The bytes of pub/sub, however they are cut, and what is none of its messages: that costs only who sent it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK, time_factor
from tests.workers.pubsub_bus import Bus, Doors, doors_of
from tests.workers.pubsub_client import (
    Message,
    publish,
    publish_typed,
)
from tests.workers.staged import simulated

COMPRESSED = 1


@pytest.mark.parametrize("code", [0, 4, 7, 8, 127, 128, 255])
def test_an_unknown_code_ends_the_connection_once_what_came_before_is_acked(bus: Bus, doors: Doors, code: int) -> None:
    watcher = doors.pubsub(0)
    for place in (0, len(bus) - 1):
        topics = [topic.encode() for topic in bus.topics(len(bus))]
        watcher.subscribe(*topics)
        client = doors.pubsub(place)
        before = b"".join(publish(topic, b"before") for topic in topics)
        client.write(before + bytes((code,)) + publish(topics[0], b"after"))
        assert client.until_end() == (len(topics), [], b"")
        assert sorted(watcher.messages(len(topics))) == sorted(Message(topic, b"before") for topic in topics)
    assert not watcher.has_input(0.01)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"no zlib at all", id="no zlib"),
        pytest.param(zlib.compress(b"z" * 65_536), id="a byte too much"),
        pytest.param(zlib.compress(b"\x00" * 6_000_000, 9), id="a bomb"),
    ],
)
def test_a_bad_compressed_payload_ends_the_connection_once_what_came_before_is_acked(
    bus: Bus, doors: Doors, payload: bytes
) -> None:
    for place in (0, len(bus) - 1):
        topics = [topic.encode() for topic in bus.topics(len(bus))]
        watcher = doors.pubsub((place + 1) % len(bus))
        watcher.subscribe(*topics)
        client = doors.pubsub(place)
        client.write(
            b"".join(publish(topic, b"before") for topic in topics)
            + publish_typed(topics[0], 1, COMPRESSED, payload)
            + publish(topics[0], b"after")
        )
        assert client.until_end() == (len(topics), [], b"")
        assert sorted(watcher.messages(len(topics))) == sorted(Message(topic, b"before") for topic in topics)
        assert not watcher.has_input(0.01)


@pytest.mark.parametrize("count", [1, 500])
def test_who_ends_its_own_half_gets_its_acks_and_then_the_end(bus: Bus, doors: Doors, count: int) -> None:
    for place in range(len(bus)):
        topics = [topic.encode() for topic in bus.topics(len(bus))]
        watcher = doors.pubsub((place + 1) % len(bus))
        watcher.subscribe(*topics)
        client = doors.pubsub(place)
        payload = b"p" * 2000  # so that it cannot all be on its way at once
        client.write(b"".join(publish(topics[n % len(topics)], payload) for n in range(count)))
        client.end_own_half()
        assert client.until_end() == (count, [], b"")
        assert len(watcher.messages(count)) == count
        assert not watcher.has_input()


HALF_FRAME_S = 0.4


@pytest.fixture(scope="module")
def impatient() -> Iterator[Bus]:
    """A node that waits for the rest of a message but a moment."""
    with simulated(2, half_frame_s=HALF_FRAME_S * time_factor()) as node:
        yield node.bus
        node.assert_unharmed()


class TestHalfAMessage:
    @pytest.mark.parametrize("cut", [1, 6, -1])
    def test_ends_the_connection_when_it_is_old(self, impatient: Bus, cut: int) -> None:
        topic = impatient.topic(1).encode()
        with doors_of(impatient) as doors:
            client = doors.pubsub(0)
            client.write(publish(topic, b"whole") + publish(topic, b"half")[:cut])
            client.acks(1)
            began = CLOCK.monotonic()
            client.wait_for_end()
            assert 0.3 * time_factor() < CLOCK.monotonic() - began < 1.5 * time_factor()
