"""The pure core of the pub/sub clients: bytes in and out, with a clock that the test turns."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.address import Address
from skywalker.cause import Cause
from skywalker.clients.call import Call
from skywalker.errors import (
    Cancelled,
    RemoteProtocolError,
    TimedOut,
    Unauthorized,
    Unreachable,
    Why,
)
from skywalker.pubsub.exchange import MUTE_TRIES, Exchange
from skywalker.pubsub.message import Message, publication, topic_bytes
from skywalker.wire import pubsub
from skywalker.wire.pubsub import ACKED
from tests.helpers import time_factor

T0 = 1000.0


def make(buffer: int = 100, typed: bool = False, is_subscriber: bool = True) -> Exchange:
    exchange = Exchange("here", is_subscriber=is_subscriber, typed=typed, buffer=buffer)
    exchange.connected_to_node(T0, Address.parse("a:1"))
    return exchange


def publish(exchange: Exchange, payload: bytes, timeout: float = 1.0, now: float = T0) -> Call:
    call = Call()
    exchange.begin(call, "publish", (b"t", pubsub.publish(b"t", payload)), timeout, now)
    return call


def subscribe(exchange: Exchange, topic: bytes, timeout: float = 1.0, now: float = T0) -> Call:
    call = Call()
    exchange.begin(call, "subscribe", (topic,), timeout, now)
    return call


def unsubscribe(exchange: Exchange, topic: bytes, timeout: float = 1.0, now: float = T0) -> Call:
    call = Call()
    exchange.begin(call, "unsubscribe", (topic,), timeout, now)
    return call


def listening(*topics: bytes, buffer: int = 100) -> Exchange:
    """Return an exchange for which these topics are in effect."""
    exchange = make(buffer)
    for topic in topics:
        subscribe(exchange, topic)
    exchange.main.output()
    exchange.receive(exchange.main, ACKED * len(topics), T0)
    exchange.ended.clear()
    return exchange


def taken(exchange: Exchange) -> list[Message]:
    messages = []
    while (message := exchange.take(T0)) is not None:
        messages.append(message)
    return messages


# Who is not let in.


def turned_away(exchange: Exchange, times: int) -> None:
    """Have the node close so many connections, and make the next."""
    for _ in range(times):
        exchange.disconnected("the node closed the connection", T0)
        exchange.connected_to_node(T0, Address.parse("a:1"))


def test_a_node_that_closes_connection_after_connection_and_acknowledges_nothing_refuses_us() -> None:
    exchange = make()
    asks = [publish(exchange, b"1"), subscribe(exchange, b"x")]
    turned_away(exchange, MUTE_TRIES - 1)
    assert not any(ask.ended for ask in asks)
    exchange.disconnected("the node closed the connection", T0)
    assert exchange.given_up
    assert exchange.ended == asks
    assert all(isinstance(ask.error, Unauthorized) and ask.error.why is Why.MUTE for ask in asks)
    assert all("it refuses us, is at a limit, or is no door for this" in str(ask.error) for ask in asks)
    assert exchange.topics == []
    assert not exchange.busy


@pytest.mark.parametrize("why", Why)
def test_what_another_attempt_would_only_be_told_again_ends_what_was_asked_unless_it_was_otherwise(why: Why) -> None:
    never = Exchange("here")
    connected, known = make(), listening(b"t")
    for exchange, ends in ((never, True), (connected, why.is_about_us), (known, False)):
        ask = publish(exchange, b"1")
        exchange.disconnected(Cause("for a reason", why), T0)
        assert exchange.given_up == ask.ended == ends
        if ends:
            assert isinstance(ask.error, Unauthorized if why.is_about_us else Unreachable)


# Subscriptions.


def test_a_subscribe_that_fails_is_withdrawn_unless_the_topic_was_in_effect() -> None:
    exchange = listening(b"old")
    asks = [subscribe(exchange, b"new"), subscribe(exchange, b"old")]
    exchange.main.output()
    exchange.tick(T0 + 1.1)
    assert [type(ask.error) for ask in asks] == [TimedOut, TimedOut]
    assert exchange.main.output() == pubsub.unsubscribe(b"new")
    assert exchange.topics == [b"old"]
    exchange.receive(exchange.main, ACKED * 3, T0 + 1.2)
    assert exchange.main.hang_up == ""


def test_a_subscribe_that_fails_last_is_withdrawn_for_all_that_asked_for_the_same() -> None:
    exchange = make()
    first, second = subscribe(exchange, b"a"), subscribe(exchange, b"a", timeout=2)
    exchange.main.output()
    exchange.abandon(second, T0)
    assert (exchange.main.output(), exchange.topics) == (b"", [b"a"])
    exchange.tick(T0 + 1.1)
    assert first.error
    assert (exchange.main.output(), exchange.topics) == (pubsub.unsubscribe(b"a"), [])


@pytest.mark.parametrize("topics", [1, 20_000])
def test_thousands_of_subscribes_that_fail_together_cost_no_more_each_than_one(topics: int) -> None:
    exchange = make()
    for number in range(20_000):
        subscribe(exchange, b"%d" % (number % topics))
    started = time.process_time()
    exchange.tick(T0 + 1.1)
    assert time.process_time() - started < 2 * time_factor()
    assert len(exchange.ended) == 20_000
    assert exchange.topics == []


def test_what_is_abandoned_ends_and_its_acknowledgement_is_nobodys() -> None:
    exchange = make()
    one, other = publish(exchange, b"1"), publish(exchange, b"2")
    exchange.abandon(one, T0)
    exchange.abandon(one, T0)
    assert isinstance(one.error, Cancelled)
    exchange.receive(exchange.main, ACKED, T0)
    assert not other.ended
    exchange.disconnected("cut", T0)
    exchange.main.output()
    exchange.connected_to_node(T0, Address.parse("b:2"))
    assert exchange.main.output() == pubsub.publish(b"t", b"2")


# What a node must not do.


def test_messages_for_nobody_are_no_way_to_fill_the_memory_of_a_publisher() -> None:
    exchange = make(is_subscriber=False)
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1"), T0)
    assert "subscribed" in exchange.main.hang_up
    assert exchange.waiting == 0


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_payload_that_cannot_be_decompressed_is_said_and_costs_no_connection(is_replaced: bool) -> None:
    exchange = listening(b"a")
    exchange.receive(exchange.main, pubsub.publish_typed(b"a", b"\0\x01", b"no zlib") + pubsub.publish(b"a", b"2"), T0)
    if is_replaced:
        exchange.disconnected("cut", T0)
        exchange.connected_to_node(T0, Address.parse("b:2"))
    with pytest.raises(RemoteProtocolError, match="topic 'a': the payload is not zlib"):
        exchange.take(T0)
    assert exchange.main.hang_up == ""
    assert taken(exchange) == [Message("a", b"2")]


@given(st.binary(max_size=60), st.integers(0, 3))
def test_any_bytes_are_messages_good_or_bad_or_end_the_connection(data: bytes, owed: int) -> None:
    exchange = listening(b"a")
    for _ in range(owed):
        publish(exchange, b"1")
    exchange.receive(exchange.main, data, T0)
    for _ in range(exchange.waiting):
        with contextlib.suppress(RemoteProtocolError):
            assert exchange.take(T0)
    assert exchange.take(T0) is None


# Messages.


def test_compressing_is_left_where_it_makes_nothing_smaller() -> None:
    assert publication(b"t", b"ab", None, True) == pubsub.publish_typed(b"t", b"\0\0", b"ab")
    smaller = publication(b"t", b"a" * 10_000, 3, True)
    assert len(smaller) < 100
    assert smaller[3:5] == b"\x03\x01"


def test_text_is_utf_8_and_bytes_that_are_not_come_back_as_they_were() -> None:
    assert topic_bytes("ä") == b"\xc3\xa4"
    assert topic_bytes(b"\xff") == topic_bytes("\udcff") == topic_bytes(bytearray(b"\xff")) == b"\xff"
    assert publication(b"t", "ä", None, False) == pubsub.publish(b"t", b"\xc3\xa4")
    exchange = listening(b"t")
    exchange.receive(exchange.main, pubsub.publish(b"\xff", b""), T0)
    message = exchange.take(T0)
    assert message is not None
    assert topic_bytes(message.topic) == b"\xff"
