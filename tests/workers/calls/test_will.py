"""`:will!`: what a client leaves to be published if its connection is lost."""

from __future__ import annotations

import contextlib
import itertools

import msgpack
import pytest

from skywalker.limits import Limits
from tests.workers.one_worker import OneWorker
from tests.workers.pubsub_bus import Bus, Doors
from tests.workers.wire_client import TIMED_OUT, WireClient, refusal

LONG_MS = 60_000


def left(client: WireClient, id: int, topic: str, value: object, timeout: int = LONG_MS) -> None:
    """Have a will in effect: what the client says next is answered after it."""
    client.call(":will!", id, timeout, topic, value)
    assert client.ask(":ping", "in effect") is True


def nobody_gets_it(client: WireClient, topic: str) -> None:
    client.call(":recv!", "first", 200, topic)
    assert client.reply() == [":recv!", "first", TIMED_OUT]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_it_is_published_at_once_when_the_connection_is_lost(bus: Bus, doors: Doors, end: str) -> None:
    for owner, place in itertools.product(range(len(bus)), range(len(bus))):
        topic = bus.topic(owner)
        leaver, heir, subscriber = doors.junction(place), doors.junction(0), doors.junction(len(bus) - 1)
        assert subscriber.ask(":subscribe", "s", topic) is True
        heir.call(":recv!", "heir", LONG_MS, topic)
        heir.wait_until(topic, receivers=1)
        left(leaver, 1, topic, {"gone": True})
        getattr(leaver, end)()
        assert heir.reply() == [":recv!", "heir", {"gone": True}]
        assert subscriber.reply() == [":message", "s", {"gone": True}]


def test_it_waits_for_nobody(bus: Bus, doors: Doors) -> None:
    topic = bus.topic(0)
    leaver, heir, other = doors.junction(0), doors.junction(0), doors.junction(len(bus) - 1)
    left(leaver, 1, topic, "gone")
    assert other.info(topic)["senders"] == other.info(topic)["receivers"] == 0
    heir.call(":recv!", "heir", LONG_MS, topic)
    other.wait_until(topic, receivers=1)
    leaver.close()
    assert heir.reply() == [":recv!", "heir", "gone"]
    nobody_gets_it(other, topic)


def test_one_that_is_cancelled_is_not_published(bus: Bus, doors: Doors) -> None:
    topic = bus.topic(0)
    leaver, other = doors.junction(0), doors.junction(len(bus) - 1)
    left(leaver, 1, topic, "gone")
    leaver.call(":cancel", 2, 1)
    first, second = leaver.replies(2)
    assert refusal(first)[:3] == (":will!", 1, "cancelled")
    assert second == [":cancel", 2, True]
    leaver.close()
    nobody_gets_it(other, topic)


@pytest.mark.parametrize("timeout", [0, 30])
def test_one_whose_time_is_over_is_not_published(bus: Bus, doors: Doors, timeout: int) -> None:
    topic = bus.topic(0)
    leaver, other = doors.junction(0), doors.junction(len(bus) - 1)
    assert leaver.ask(":will!", 1, timeout, topic, "gone") == TIMED_OUT
    leaver.close()
    nobody_gets_it(other, topic)


@pytest.mark.parametrize("waits", [False, True])
def test_who_waits_for_nothing_but_has_left_one_is_not_asked_whether_it_lives(waits: bool) -> None:
    """It may be at work, as a program is that serves a request."""
    with contextlib.closing(OneWorker(Limits(idle_probe_s=60.0))) as worker, worker.connect() as leaver:
        leaver.call(":hello", "h", {})
        leaver.call(":will!", 1, 24 * 3600 * 1000, "topic", "gone")
        if waits:
            leaver.call(":recv!", 2, 24 * 3600 * 1000, "other")
        worker.turn()
        assert leaver.reply()[:2] == [":hello", "h"]
        worker.turn(later=61.0)
        assert leaver.has_input() is waits


def test_what_it_takes_is_checked(bus: Bus, doors: Doors) -> None:
    client = doors.junction(0)
    for arguments, code in (
        ((1, "topic", "value"), "bad-arity"),
        ((1, "soon", "topic", "value"), "bad-timeout"),
        ((1, 1000, "t" * 5000, "value"), "bad-topic"),
        ((1, 1000, "topic", msgpack.ExtType(0x45, b"\x93\xa0\xa0\x80")), "reserved-value"),
        ((1, 1000, "topic", msgpack.ExtType(0x54, b"\x00")), "reserved-value"),
    ):
        client.call(":will!", *arguments)
        assert client.refusal().code == code
    assert "will" in client.ask(":hello", 2, {})["extensions"]
