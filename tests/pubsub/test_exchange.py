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
from skywalker.clients.news import News, Notice
from skywalker.clients.stream import PROBE_S
from skywalker.errors import (
    Cancelled,
    Closed,
    LocalProtocolError,
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
from tests.wire.streams import cut

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


def notices(exchange: Exchange) -> list[Notice]:
    """Return the news of the subscription, without those of connections."""
    return [news for news in exchange.news if isinstance(news, Notice)]


# What is asked, and acknowledged.


def test_acknowledgements_end_what_was_asked_in_order() -> None:
    exchange = make()
    asks = [publish(exchange, b"1"), subscribe(exchange, b"x"), unsubscribe(exchange, b"x")]
    assert exchange.main.output() == pubsub.publish(b"t", b"1") + pubsub.subscribe(b"x") + pubsub.unsubscribe(b"x")
    assert exchange.main.output() == b""
    for count in range(3):
        assert [ask.ended for ask in asks] == [True] * count + [False] * (3 - count)
        exchange.receive(exchange.main, ACKED, T0)
    assert exchange.ended == asks
    assert [ask.error for ask in asks] == [None] * 3
    assert exchange.wait(T0) is None


def test_messages_lie_between_acknowledgements_however_the_stream_was_cut() -> None:
    stream = ACKED + pubsub.publish(b"t", b"1") + ACKED + pubsub.publish_typed(b"", b"\x07\0", b"") + ACKED
    for place in range(len(stream) + 1):
        exchange = make(typed=True)
        asks = [subscribe(exchange, b"t"), subscribe(exchange, b""), subscribe(exchange, b"t")]
        for piece in cut(stream, [place]):
            exchange.receive(exchange.main, piece, T0)
        assert exchange.ended == asks
        assert taken(exchange) == [Message("t", b"1"), Message("", b"", 7)]
        assert exchange.main.hang_up == ""


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


def test_one_that_was_gone_meanwhile_does_not() -> None:
    exchange = make()
    ask = publish(exchange, b"1")
    for _ in range(3):
        turned_away(exchange, MUTE_TRIES - 2)
        exchange.disconnected("the node closed the connection", T0)
        exchange.disconnected("connection refused", T0)
        exchange.connected_to_node(T0, Address.parse("a:1"))
    assert not ask.ended


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


# Time.


def test_what_is_not_acknowledged_in_time_says_where_and_that_it_may_have_taken_effect() -> None:
    exchange = make()
    ask = publish(exchange, b"1", timeout=2)
    wait = exchange.wait(T0)
    assert wait is not None
    assert 2 <= wait < 2.02
    exchange.tick(T0 + 1.99)
    assert not ask.ended
    exchange.tick(T0 + 2.02)
    assert isinstance(ask.error, TimedOut)
    told = "a:1 did not acknowledge the publish to 't' within 2 s; it may have taken effect"
    assert str(ask.error).removesuffix(f": {ask.error.advice}") == told
    # Its acknowledgement is still owed, and is not taken for the next one's.
    later = publish(exchange, b"2", now=T0 + 3)
    exchange.receive(exchange.main, ACKED, T0 + 3)
    assert not later.ended
    exchange.receive(exchange.main, ACKED, T0 + 3)
    assert later.ended
    assert later.error is None


def test_without_a_connection_it_says_which_and_why_and_never_reaches_a_later_one() -> None:
    exchange = Exchange("a:1,b:2")
    exchange.disconnected("a:1: connection refused", T0)
    ask = publish(exchange, b"1")
    exchange.tick(T0 + 1.1)
    assert isinstance(ask.error, Unreachable)
    assert str(ask.error).startswith("no node reachable at a:1,b:2: a:1: connection refused")
    assert "may have taken effect" not in str(ask.error)
    exchange.connected_to_node(T0 + 2, Address.parse("b:2"))
    assert exchange.main.output() == b""


def test_a_connection_that_broke_between_is_named_in_a_timeout() -> None:
    exchange = make()
    ask = publish(exchange, b"1")
    exchange.disconnected("the node closed the connection", T0)
    exchange.connected_to_node(T0, Address.parse("b:2"))
    exchange.tick(T0 + 1.1)
    assert isinstance(ask.error, TimedOut)
    assert "b:2" in str(ask.error)
    assert "the node closed the connection" in str(ask.error)


def test_a_node_that_owes_an_acknowledgement_and_is_silent_is_left() -> None:
    exchange = listening(b"t")
    exchange.tick(T0 + 1000)
    assert not exchange.main.hang_up  # it owes nothing
    now = T0 + 1000
    publish(exchange, b"1", timeout=60, now=now)
    assert exchange.wait(now) == PROBE_S
    exchange.receive(exchange.main, pubsub.publish(b"t", b"alive"), now + PROBE_S - 1)
    exchange.tick(now + PROBE_S)
    assert not exchange.main.hang_up
    exchange.tick(now + 2 * PROBE_S - 1)
    assert "silent" in exchange.main.hang_up
    assert (exchange.wait(now + 2 * PROBE_S) or 0) > 1  # nothing more of it is due


# Subscriptions.


def test_after_a_loss_all_topics_are_subscribed_to_again_and_a_gap_is_told_once_they_are() -> None:
    exchange = listening(b"a", b"b")
    exchange.disconnected("cut", T0 + 1)
    assert [notice.is_gap for notice in notices(exchange)] == [False]
    assert "a:1 was lost: cut" in notices(exchange)[0].text
    exchange.news.clear()
    exchange.disconnected("b:2: refused", T0 + 2)  # attempts
    exchange.connected_to_node(T0 + 3, Address.parse("b:2"))
    assert exchange.main.output() == pubsub.subscribe(b"a") + pubsub.subscribe(b"b")
    exchange.receive(exchange.main, ACKED, T0 + 3)
    assert (exchange.gaps, notices(exchange)) == (0, [])
    exchange.receive(exchange.main, ACKED, T0 + 3)
    assert exchange.gaps == 1
    (news,) = notices(exchange)
    assert news.is_gap
    assert "a:1 was lost: cut" in news.text
    assert "at b:2, after 2 s" in news.text


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


def test_a_subscribe_that_fails_is_not_withdrawn_while_another_asks_for_the_same() -> None:
    exchange = make()
    first, second = subscribe(exchange, b"a", timeout=1), subscribe(exchange, b"a", timeout=5)
    exchange.main.output()
    exchange.tick(T0 + 1.1)
    assert first.error
    assert exchange.main.output() == b""
    exchange.receive(exchange.main, ACKED * 2, T0 + 1.2)
    assert second.ended
    assert exchange.topics == [b"a"]


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


def test_a_topic_that_is_too_long_is_refused_before_anything_is_asked() -> None:
    exchange = make()
    for ask in (subscribe, unsubscribe):
        with pytest.raises(LocalProtocolError, match="topic of 256 bytes"):
            ask(exchange, b"x" * 256)
    assert not exchange.busy


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


def test_the_end_ends_everything() -> None:
    exchange = listening(b"a")
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1"), T0)
    ask = publish(exchange, b"1")
    exchange.close(Closed("closed"))
    assert isinstance(ask.error, Closed)
    assert exchange.take(T0) is None
    assert not exchange.busy


# The buffer.


def test_without_a_bound_it_is_never_full() -> None:
    exchange = listening(b"a", buffer=0)
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1") * 10_000, T0)
    assert exchange.waiting == 10_000
    assert not exchange.main.is_full


def test_it_is_full_at_the_bound_and_has_room_at_half_of_it() -> None:
    exchange = listening(b"a", buffer=4)
    for number in range(4):
        assert not exchange.main.is_full
        exchange.receive(exchange.main, pubsub.publish(b"a", b"%d" % number), T0)
    assert exchange.main.is_full
    for _ in range(2):
        assert exchange.main.is_full
        exchange.take(T0)
    assert not exchange.main.is_full


def test_an_acknowledgement_is_read_even_where_the_buffer_is_full() -> None:
    exchange = listening(b"a", buffer=1)
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1"), T0)
    assert exchange.main.is_full
    unsubscribe(exchange, b"a")
    assert not exchange.main.is_full
    exchange.receive(exchange.main, ACKED, T0)
    assert exchange.main.is_full


# What a node must not do.


@pytest.mark.parametrize(
    "data", [ACKED, b"\x00", b"\x07", b"\xff", b"\x02\x01a", b"\x03\x01a", b"\x05\x01a"], ids=bytes.hex
)
def test_a_node_that_says_what_makes_no_sense_is_left(data: bytes) -> None:
    exchange = listening(b"a")
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1") + data + pubsub.publish(b"a", b"2"), T0)
    assert exchange.main.hang_up
    assert [message.payload for message in taken(exchange)] == [b"1"]


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


@pytest.mark.parametrize("hint", [None, 0, 255])
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("payload", [b"", b"a" * 65_535, bytes(range(256)) * 2], ids=["empty", "longest", "dense"])
def test_what_is_published_is_what_a_typed_subscriber_reads(payload: bytes, compress: bool, hint: int | None) -> None:
    exchange = listening(b"t")
    frame = publication(b"t", payload, hint, compress)
    assert len(frame) <= 1 + 1 + 1 + 2 + 2 + len(payload)
    exchange.receive(exchange.main, frame, T0)
    expected = None if hint is None and not compress else hint or 0
    assert exchange.take(T0) == Message("t", payload, expected)


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


@pytest.mark.parametrize("topic", [b"x" * 256, "ä" * 128, "\ud800", 7, None])
def test_a_topic_that_is_none_is_refused(topic: object) -> None:
    with pytest.raises(LocalProtocolError, match="topic"):
        topic_bytes(topic)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("payload", [b"x" * 65_536, "\ud800", 7, None])
def test_a_payload_that_is_none_is_refused(payload: object, compress: bool) -> None:
    with pytest.raises(LocalProtocolError, match="payload"):
        publication(b"t", payload, None, compress)


@pytest.mark.parametrize("hint", [-1, 256, 1.5, "1"])
def test_a_hint_that_is_none_is_refused(hint: int) -> None:
    with pytest.raises(LocalProtocolError, match="hint"):
        publication(b"t", b"", hint, False)


def test_connections_that_are_made_and_lost_are_news_and_attempts_are_not() -> None:
    exchange = Exchange("here")
    exchange.disconnected("nobody there", T0)
    exchange.connected_to_node(T0, Address.parse("a:1"))
    exchange.disconnected("cut", T0)
    exchange.disconnected("nobody there", T0)
    exchange.connected_to_node(T0, Address.parse("b:2"))
    assert exchange.news == [News("a:1"), News("a:1", "cut"), News("b:2")]


# Who waits for a message.


def waiting(exchange: Exchange, count: int) -> list[Call]:
    calls = [Call() for _ in range(count)]
    for call in calls:
        exchange.begin(call, "message", (), 60.0, T0)
    return calls


def test_as_many_of_those_who_wait_end_as_there_are_messages_the_first_first() -> None:
    exchange = listening(b"a")
    calls = waiting(exchange, 3)
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1") + pubsub.publish(b"a", b"2"), T0)
    assert exchange.ended == calls[:2]
    assert exchange.waiting == 2
    assert [call.error for call in calls[:2]] == [None, None]
    assert not calls[2].ended
    exchange.wake()  # as one of them does that takes no message
    assert calls[2].ended


def test_who_begins_to_wait_while_there_is_a_message_need_not() -> None:
    exchange = listening(b"a")
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1"), T0)
    assert [call.ended for call in waiting(exchange, 1)] == [True]


def test_who_waits_no_more_is_not_in_the_way_of_others() -> None:
    exchange = listening(b"a")
    first, second = waiting(exchange, 2)
    exchange.abandon(first, T0)
    assert isinstance(first.error, Cancelled)
    exchange.receive(exchange.main, pubsub.publish(b"a", b"1"), T0)
    assert second.ended
    assert second.error is None


def test_who_waits_is_told_at_the_end() -> None:
    exchange = listening(b"a")
    calls = waiting(exchange, 2)
    exchange.tick(T0 + 61)
    assert [call.error for call in calls] == [None, None]  # to look for a message, and wait again
    (call,) = waiting(exchange, 1)
    exchange.close(Closed("it is"))
    assert isinstance(call.error, Closed)
