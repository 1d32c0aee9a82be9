"""Whatever happens to a subscriber's connections: what was acknowledged took effect, and no loss goes unsaid."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skywalker.address import Address
from skywalker.clients.call import Call
from skywalker.errors import Unauthorized
from skywalker.pubsub.exchange import MUTE_TRIES, Exchange
from skywalker.wire import pubsub
from skywalker.wire.pubsub import ACKED, PUBLISH, SUBSCRIBE, UNSUBSCRIBE

TOPICS = st.sampled_from([b"", b"a", b"b"])
NOW = 1000.0


class Node:
    """A node, of which the test decides how far it has read and been read."""

    def __init__(self) -> None:
        self.published: Counter[bytes] = Counter()  # by payload
        self.routed: list[bytes] = []  # payloads of messages for the subscriber, whether or not they reach it
        self.lose()

    def lose(self) -> None:
        """The connection is gone, with all that was on its way and what it was subscribed to."""
        self.topics: set[bytes] = set()
        self.incoming = b""
        self.tail = b""
        self.outgoing = b""

    def read(self, count: int) -> None:
        """Take in so many bytes of what the client wrote."""
        data, self.incoming = self.incoming[:count], self.incoming[count:]
        items, self.tail = pubsub.split(self.tail + data)
        for code, topic, _, payload, _ in items:
            if code == PUBLISH:
                self.publish(topic, payload)
            elif code == SUBSCRIBE:
                self.topics.add(topic)
            else:
                assert code == UNSUBSCRIBE
                self.topics.discard(topic)
            self.outgoing += ACKED

    def publish(self, topic: bytes, payload: bytes) -> None:
        """Route what anybody has published."""
        self.published[payload] += 1
        if topic in self.topics:
            self.routed.append(payload)
            self.outgoing += pubsub.publish(topic, payload)


class Subscriber(RuleBasedStateMachine):
    """A subscriber, which publishes over the same connection too, and somebody else who publishes."""

    def __init__(self) -> None:
        super().__init__()
        self.exchange = Exchange("here", is_subscriber=True)
        self.node = Node()
        self.asks: list[tuple[Call, bytes]] = []  # with the payload, of a publish
        self.received: list[bytes] = []
        self.begun: list[Call] = []  # all of them
        self.cuts = 0
        self.mute_cuts = 0  # in a row, before anything was acknowledged
        self.promised: dict[bytes, tuple[bytes, int]] = {}  # published while it listened: topic, and cuts until then
        self.number = 0
        self.exchange.connected_to_node(NOW, Address.parse("a:1"))

    def payload(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    @rule(topic=TOPICS)
    def subscribe(self, topic: bytes) -> None:
        ask = Call()
        self.exchange.begin(ask, "subscribe", (topic,), 10, NOW)
        self.begun.append(ask)
        self.asks.append((ask, b""))

    @rule(topic=TOPICS)
    def unsubscribe(self, topic: bytes) -> None:
        # What was just on its way may not come.
        self.promised = {payload: promise for payload, promise in self.promised.items() if promise[0] != topic}
        ask = Call()
        self.exchange.begin(ask, "unsubscribe", (topic,), 10, NOW)
        self.begun.append(ask)
        self.asks.append((ask, b""))

    @rule(topic=TOPICS)
    def publish(self, topic: bytes) -> None:
        payload = self.payload()
        ask = Call()
        self.exchange.begin(ask, "publish", (topic, pubsub.publish(topic, payload)), 10, NOW)
        self.begun.append(ask)
        self.asks.append((ask, payload))

    @rule(topic=TOPICS)
    def another_publishes(self, topic: bytes) -> None:
        payload = self.payload()
        exchange = self.exchange
        if exchange._topics.get(topic) == {} and exchange.is_connected and not exchange._lost:
            self.promised[payload] = topic, self.cuts
        self.node.publish(topic, payload)

    @rule(index=st.integers(0, 30))
    def give_up(self, index: int) -> None:
        """Abandon a publish: of the others it would be hard to say what is then in effect."""
        open_publishes = [(ask, payload) for ask, payload in self.asks if payload and not ask.ended]
        if index < len(open_publishes):
            self.exchange.abandon(open_publishes[index][0], NOW)
            self.asks.remove(open_publishes[index])

    @rule(count=st.integers(1, 12))
    def node_reads(self, count: int) -> None:
        self.node.incoming += self.exchange.main.output()
        self.node.read(count)

    @rule(count=st.integers(1, 12))
    def client_reads(self, count: int) -> None:
        data, self.node.outgoing = self.node.outgoing[:count], self.node.outgoing[count:]
        if data and self.exchange.is_connected:
            self.exchange.receive(self.exchange.main, data, NOW)

    @rule()
    def take(self) -> None:
        message = self.exchange.take(NOW)
        if message is not None:
            self.received.append(message.payload)

    @rule()
    def cut(self) -> None:
        if self.exchange.is_connected:
            self.cuts += 1
            self.node.lose()
            self.exchange.disconnected("cut", NOW)
            self.mute_cuts = 0 if any(ask.ended and not ask.error for ask in self.begun) else self.mute_cuts + 1
            if self.exchange.given_up:
                assert self.mute_cuts >= MUTE_TRIES
                assert all(isinstance(ask.error, Unauthorized) for ask, _ in self.asks)
                self.asks.clear()

    @rule()
    def connect(self) -> None:
        if not self.exchange.is_connected:
            self.exchange.connected_to_node(NOW, Address.parse("b:2"))

    @invariant()
    def the_connection_is_no_worse_than_the_test_makes_it(self) -> None:
        assert self.exchange.main.hang_up == ""

    @invariant()
    def what_was_acknowledged_has_taken_effect(self) -> None:
        for ask, payload in self.asks:
            if payload and ask.ended:
                assert self.node.published[payload]

    def teardown(self) -> None:
        self.connect()
        self.node.incoming += self.exchange.main.output()
        self.node.read(len(self.node.incoming))
        self.exchange.receive(self.exchange.main, self.node.outgoing, NOW)
        assert all(ask.ended and ask.error is None for ask, _ in self.asks)
        assert self.node.topics == set(self.exchange.topics)
        while self.exchange.waiting:
            self.take()
        assert Counter(self.received) <= Counter(self.node.routed)
        missed = {payload: cuts for payload, (_, cuts) in self.promised.items() if payload not in self.received}
        assert self.cuts not in missed.values()  # those that were published since the last one
        assert self.exchange.gaps or not missed or not self.exchange.topics
        assert self.exchange.gaps <= self.cuts
        assert sum(getattr(news, "is_gap", False) for news in self.exchange.news) == self.exchange.gaps


TestSubscriber = Subscriber.TestCase
TestSubscriber.settings = settings(max_examples=100, stateful_step_count=40)
