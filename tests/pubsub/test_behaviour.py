"""What a program sees of pub/sub at real nodes, by either client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import skywalker
from skywalker.embedding import Node
from skywalker.pubsub import Message
from tests.clients.driving import background
from tests.helpers import eventually, time_factor
from tests.pubsub.driving import Broker, Connect, waiters

SOON = 10.0

Nodes = Callable[[int], Node]


# The scenarios of the original.


def test_one_subscriber_gets_what_is_published(broker: Broker, topic: str) -> None:
    with broker.subscribe(topic) as alerts:
        broker.publish(topic, b"It's broke.")
        broker.publish(topic, "It's broker.")
        assert [alerts.get(SOON), alerts.get(SOON)] == [
            Message(topic, b"It's broke."),
            Message(topic, b"It's broker."),
        ]


# Topics and payloads.


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("size", [0, 1, 65_535])
def test_payloads_are_of_any_length_up_to_65_535_bytes(broker: Broker, topic: str, size: int, compress: bool) -> None:
    with broker.subscribe(topic) as plain, broker.subscribe(topic, typed=True) as typed:
        broker.publish(topic, b"x" * size, compress=compress)
        assert plain.get(SOON) == Message(topic, b"x" * size)
        assert typed.get(SOON) == Message(topic, b"x" * size, 0)


def test_a_hint_reaches_those_who_asked_for_it(broker: Broker, topic: str) -> None:
    with broker.subscribe(topic) as plain, broker.subscribe(topic, typed=True) as typed:
        broker.publish(topic, b"1", hint=255, compress=True)
        broker.publish(topic, b"2" * 1000, hint=0, compress=True)
        broker.publish(topic, b"3")
        assert [plain.get(SOON).hint for _ in range(3)] == [None] * 3
        assert [typed.get(SOON).hint for _ in range(3)] == [255, 0, 0]


def test_what_is_too_long_is_refused_and_harms_nothing(broker: Broker, topic: str) -> None:
    with broker.subscribe(topic) as messages:
        for refused in (
            lambda: broker.publish("x" * 256, b""),
            lambda: broker.publish(topic, b"x" * 65_536),
            lambda: broker.publish(topic, b"x" * 65_536, compress=True),
            lambda: broker.publish(topic, 7),
            lambda: broker.publish(topic, b"", hint=256),
            lambda: broker.publish(topic, b"", timeout=-1),
            lambda: broker.subscribe("x" * 256),
            lambda: messages.subscribe("fine", "x" * 256),
            lambda: messages.unsubscribe("x" * 256),
            lambda: messages.get(-1),
        ):
            with pytest.raises(skywalker.LocalProtocolError):
                refused()
        assert messages.topics == {topic}
        broker.publish(topic, b"1")
        assert messages.get(SOON).payload == b"1"
        assert messages.gaps == 0


# Subscriptions.


def test_topics_come_and_go_during_a_subscription(broker: Broker, topic: str) -> None:
    other = f"{topic}-other"
    with broker.subscribe() as messages:
        assert messages.topics == frozenset()
        messages.subscribe(topic, other)
        assert messages.topics == {topic, other}
        broker.publish(topic, b"1")
        assert messages.get(SOON).payload == b"1"
        messages.unsubscribe(topic)
        broker.publish(topic, b"nobody listens")
        broker.publish(other, b"2")
        assert messages.get(SOON).payload == b"2"
        messages.subscribe(topic)
        broker.publish(topic, b"3")
        assert messages.get(SOON) == Message(topic, b"3")
        messages.unsubscribe(topic, other, "never subscribed to")
        assert messages.topics == frozenset()


def test_a_topic_subscribed_to_twice_is_one_and_is_left_at_once(broker: Broker, topic: str) -> None:
    with broker.subscribe(topic, topic) as messages:
        messages.subscribe(topic)
        broker.publish(topic, b"1")
        broker.publish(topic, b"2")
        assert [messages.get(SOON).payload, messages.get(SOON).payload] == [b"1", b"2"]
        messages.unsubscribe(topic)
        broker.publish(topic, b"3")
        with pytest.raises(skywalker.TimedOut):
            messages.get(0.1)


def test_a_client_of_the_other_dialect_hears_and_is_heard(connect: Connect, node: Nodes, topic: str) -> None:
    broker = connect(node(2).pubsub_address)
    with node(2).connect() as junction, broker.subscribe(topic) as messages:
        waiting = junction.begin("recv", topic, timeout=SOON)
        eventually(lambda: junction.topic(topic)["receivers"] == 1)
        broker.publish(topic, b"1")
        assert waiting.result() == b"1"
        assert junction.send(topic, "2", timeout=SOON)
        assert [messages.get(SOON).payload, messages.get(SOON).payload] == [b"1", b"2"]


# Order and number.


def test_what_one_thread_publishes_arrives_in_order_and_once(broker: Broker, topic: str) -> None:
    with broker.subscribe(topic) as messages:
        begun = [broker.begin(topic, b"%d" % number) for number in range(500)]
        for pending in begun:
            pending.result()
        assert all(pending.done() for pending in begun)
        for number in range(500):
            assert messages.get(SOON).payload == b"%d" % number


def test_many_threads_share_one_client(broker: Broker, topic: str) -> None:
    threads, rounds = 8, 50
    with broker.subscribe(topic) as messages:

        def play(number: int) -> None:
            for round in range(rounds):
                broker.publish(topic, b"%d %d" % (number, round))

        playing = [background(lambda n=number: play(n)) for number in range(threads)]
        taking = [background(lambda: [messages.get(SOON) for _ in range(threads * rounds // 4)]) for _ in range(4)]
        for each in playing:
            each.result(60 * time_factor())
        got = [message.payload for each in taking for message in each.result(60 * time_factor())]
        assert sorted(got) == sorted(b"%d %d" % (n, r) for n in range(threads) for r in range(rounds))


def test_a_thread_that_waits_does_not_keep_another_from_changing_the_topics(broker: Broker, topic: str) -> None:
    with broker.subscribe() as messages:
        waiting = background(lambda: next(messages))
        messages.subscribe(topic)
        broker.publish(topic, b"1")
        assert waiting.result(SOON * time_factor()) == Message(topic, b"1")


# The end.


def test_the_end_of_a_subscription_ends_the_waiting_and_leaves_the_broker(broker: Broker, topic: str) -> None:
    messages = broker.subscribe(topic)
    waiting = [background(lambda: next(messages)) for _ in range(2)]
    eventually(lambda: waiters(messages) == 2)
    messages.close()
    for each in waiting:
        with pytest.raises(skywalker.Closed):
            each.result(SOON * time_factor())
    for closed in (lambda: messages.get(0), lambda: messages.subscribe(topic), lambda: next(messages)):
        with pytest.raises(skywalker.Closed):
            closed()
    messages.close()
    with broker.subscribe(topic) as again:
        broker.publish(topic, b"1")
        assert again.get(SOON).payload == b"1"


def test_the_end_of_a_broker_is_that_of_its_subscriptions(broker: Broker, topic: str) -> None:
    messages = broker.subscribe(topic)
    waiting = background(lambda: messages.get(SOON))
    eventually(lambda: waiters(messages) == 1)
    broker.close()
    with pytest.raises(skywalker.Closed):
        waiting.result(SOON * time_factor())
    for closed in (
        lambda: broker.publish(topic, b"1"),
        lambda: broker.subscribe(topic),
        lambda: messages.unsubscribe(topic),
    ):
        with pytest.raises(skywalker.Closed):
            closed()
    broker.close()


def test_a_topic_with_a_star_is_warned_of_and_is_itself(
    broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with broker.subscribe(f"{topic}.*") as messages:
        broker.publish(f"{topic}.a", b"other")
        broker.publish(f"{topic}.*", b"same")
        assert messages.get(SOON).payload == b"same"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"'{topic}.*'" in record.getMessage()
    caplog.clear()
    with broker.subscribe(topic):
        pass
    assert not caplog.records


def test_a_broker_shows_where_it_is(broker: Broker) -> None:
    shown = repr(getattr(broker, "broker", broker))
    assert "connected to 127.0.0.1" in shown
