"""Lost connections: through a proxy in front of a real node, at a node that dies, and at one that a test scripts."""

from __future__ import annotations

import logging
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import skywalker
from skywalker.embedding import Node
from skywalker.wire.pubsub import PUBLISH, SUBSCRIBE
from tests.clients.driving import background
from tests.clients.proxy import Proxy
from tests.clients.scripted import Connection, ScriptedNode
from tests.helpers import eventually, time_factor
from tests.pubsub.driving import Broker, Connect, waiters
from tests.pubsub.scripted import acknowledge, deliver, read

SOON = 10.0

QUICK_PROBE_S = 0.3

Nodes = Callable[[int], Node]


@pytest.fixture
def beside(connect: Connect, node: Nodes) -> Broker:
    """A client of the node behind the proxy, with nothing between."""
    return connect(node(2).pubsub_address)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that refuses connections."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        yield f"127.0.0.1:{held.getsockname()[1]}"


def chosen_first(*nodes: ScriptedNode) -> list[ScriptedNode]:
    """Return the nodes, the one that has a connection first."""
    eventually(lambda: not all(node.no_connection_waits() for node in nodes))
    return sorted(nodes, key=ScriptedNode.no_connection_waits)


def subscribed(connect: Connect, node: ScriptedNode, **options: object) -> tuple[Broker, Any, Connection]:
    """Return a broker, a subscription to "t", and the node's end of that."""
    broker = connect(node.address)
    node.next_connection()
    subscribing = background(lambda: broker.subscribe("t", **options))
    connection = node.next_connection()
    acknowledge(connection)
    return broker, subscribing.result(SOON * time_factor()), connection


def test_a_subscriber_listens_to_all_its_topics_again_and_says_so(
    connect: Connect, beside: Broker, proxy: Proxy, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    reasons: list[str] = []
    messages = connect(proxy.address).subscribe(topic, f"{topic}-other", on_gap=reasons.append)
    waiting = background(lambda: messages.get(SOON))
    eventually(lambda: waiters(messages) == 1)
    for count in (1, 2):
        proxy.cut()
        eventually(lambda count=count: len(reasons) == count, within=SOON)
        assert messages.gaps == count
    assert f"{proxy.address} was lost: " in reasons[0]
    assert "listening again" in reasons[0]
    told = [record for record in caplog.records if record.name == "skywalker.pubsub"]
    assert [record.levelno for record in told] == [logging.WARNING] * 4
    assert told[1].getMessage() == reasons[0]
    beside.publish(f"{topic}-other", b"1")
    assert waiting.result(SOON * time_factor()).payload == b"1"
    beside.publish(topic, b"2")
    assert messages.get(SOON).payload == b"2"


def test_a_callback_may_use_the_subscription_and_what_it_raises_harms_nothing(
    connect: Connect, beside: Broker, proxy: Proxy, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []

    def on_gap(reason: str) -> None:
        seen.append(messages.topics)
        raise ValueError("from on_gap")

    messages = connect(proxy.address).subscribe(topic, on_gap=on_gap)
    waiting = background(lambda: messages.get(SOON))
    eventually(lambda: waiters(messages) == 1)
    proxy.cut()
    eventually(lambda: seen == [{topic}], within=SOON)
    beside.publish(topic, b"1")
    assert waiting.result(SOON * time_factor()).payload == b"1"
    assert "from on_gap" in caplog.text


def test_the_kernel_watches_over_connections_that_say_nothing(connect: Connect, node: Nodes, topic: str) -> None:
    where = node(1).pubsub_address
    before = set(os.listdir("/proc/self/fd"))
    with connect(where).subscribe(topic):
        made = [int(fd) for fd in os.listdir("/proc/self/fd") if fd not in before]
        sockets = [socket.socket(fileno=os.dup(fd)) for fd in made if stat.S_ISSOCK(os.stat(fd).st_mode)]
        kept_alive = [each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for each in sockets]
        for each in sockets:
            each.close()
    assert kept_alive == [1, 1]


# Addresses.


def test_any_address_that_answers_will_do(connect: Connect, node: Nodes, nobody: str, topic: str) -> None:
    for _ in range(4):  # they are tried in random order
        broker = connect(f"{nobody}, {node(1).pubsub_address}")
        with broker.subscribe(topic) as messages:
            broker.publish(topic, b"1")
            assert messages.get(SOON).payload == b"1"


def test_after_a_loss_another_address_comes_first(connect: Connect) -> None:
    for _ in range(5):  # the order is random otherwise
        with ScriptedNode(courtesies=False) as one, ScriptedNode(courtesies=False) as other:
            broker = connect(f"{one.address},{other.address}")
            first, second = chosen_first(one, other)
            first.next_connection().close()
            publishing = background(lambda broker=broker: broker.publish("t", b"1"))
            (item,) = acknowledge(second.next_connection())
            assert item[0] == PUBLISH
            publishing.result(SOON * time_factor())
            broker.close()


def test_no_node_is_said_with_every_address_and_why(connect: Connect, nobody: str) -> None:
    started = time.monotonic()
    with pytest.raises(skywalker.Unreachable, match=f"{nobody}: connection refused.* started with --pubsub"):
        connect(nobody, connect_timeout=0.3)
    assert 0.3 <= time.monotonic() - started < 2 * time_factor()


def test_a_door_that_acknowledges_nothing_is_told_from_one_that_did_before(
    connect: Connect, scripted: ScriptedNode
) -> None:
    broker = connect(scripted.address)
    with pytest.raises(skywalker.TimedOut, match="started with --pubsub"):
        broker.publish("t", b"1", timeout=0.1)
    publishing = background(lambda: broker.publish("t", b"2", timeout=SOON))
    connection = scripted.next_connection()
    acknowledge(connection)
    acknowledge(connection)
    publishing.result(SOON * time_factor())
    with pytest.raises(skywalker.TimedOut) as caught:
        broker.publish("t", b"3", timeout=0.1)
    assert "--pubsub" not in str(caught.value)


def test_without_a_node_every_call_ends_in_time_and_says_why(connect: Connect, proxy: Proxy) -> None:
    broker = connect(proxy.address)
    messages = broker.subscribe("t")
    proxy.refuse()
    proxy.cut()
    for call in (
        lambda: broker.publish("t", b"1", timeout=0.3),
        lambda: messages.subscribe("more", timeout=0.3),
        lambda: messages.unsubscribe("t", timeout=0.3),
        lambda: messages.get(timeout=0.3),
    ):
        started = time.monotonic()
        with pytest.raises(skywalker.Unreachable, match=f"{proxy.address}: connection refused"):
            call()
        assert time.monotonic() - started < 2 * time_factor()
    assert messages.topics == frozenset()


# At a node that does as it is told.


def test_a_node_that_does_not_acknowledge_is_named_in_the_timeout(connect: Connect, scripted: ScriptedNode) -> None:
    broker = connect(scripted.address)
    with pytest.raises(
        skywalker.TimedOut, match=f"{scripted.address} did not acknowledge the publish to 't' within 0.2"
    ):
        broker.publish("t", b"1", timeout=0.2)
    with pytest.raises(skywalker.TimedOut, match=r"the subscribe to 't' within 0\.2 s"):
        broker.subscribe("t", timeout=0.2)
    broker.close()


def test_a_silent_node_that_owes_an_acknowledgement_is_left_for_another(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("clients.stream", "pubsub.exchange"):
        monkeypatch.setattr(f"skywalker.{module}.PROBE_S", QUICK_PROBE_S)
    with ScriptedNode(courtesies=False) as one, ScriptedNode(courtesies=False) as other:
        broker = connect(f"{one.address},{other.address}")
        first, second = chosen_first(one, other)
        silent = first.next_connection()
        publishing = background(lambda: broker.publish("t", b"1", timeout=SOON))
        assert read(silent) is not None
        eventually(lambda: not second.no_connection_waits(), within=SOON)
        assert read(silent) is None  # the client has left
        acknowledge(second.next_connection())
        publishing.result(SOON * time_factor())
        broker.close()


def test_a_node_that_talks_nonsense_is_left_like_a_lost_one(connect: Connect, scripted: ScriptedNode) -> None:
    broker, messages, connection = subscribed(connect, scripted)
    deliver(connection, "t", b"1")
    connection.write_bytes(b"\x09")
    assert messages.get(SOON).payload == b"1"
    waiting = background(lambda: messages.get(SOON))
    again = scripted.next_connection()
    assert [item[:2] for item in acknowledge(again)] == [(SUBSCRIBE, b"t")]
    deliver(again, "t", b"2")
    assert waiting.result(SOON * time_factor()).payload == b"2"
    assert messages.gaps == 1
    broker.close()


# What is told of it.


def shown(each: Any) -> str:
    return repr(getattr(each, "broker", None) or getattr(each, "subscription", None) or each)


def test_connections_that_are_made_and_lost_are_told_and_logged(
    connect: Connect, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[str] = []
    lost: list[tuple[str, str]] = []

    def publishes() -> bool:
        try:
            broker.publish("t", b"1", timeout=0.1)
        except (skywalker.Unreachable, skywalker.TimedOut):
            return False
        return True

    with caplog.at_level(logging.INFO, "skywalker.pubsub"):
        broker = connect(proxy.address, on_connect=made.append, on_disconnect=lambda *what: lost.append(what))
        eventually(lambda: publishes() and made == [proxy.address], within=SOON)
        assert lost == []
        assert f"Broker of {proxy.address}, connected to {proxy.address}>" in shown(broker)
        messages = broker.subscribe("t")
        assert f"Subscription at {proxy.address}, connected to {proxy.address}>" in shown(messages)
        messages.close()
        assert ", closed>" in shown(messages)
        assert made == [proxy.address]  # that of the subscription is not the broker's
        proxy.refuse()
        proxy.cut()
        eventually(lambda: not publishes() and lost, within=SOON)
        assert "not connected: " in shown(broker)
        proxy.accept()
        eventually(lambda: publishes() and len(made) == 2, within=SOON)
    ((address, cause),) = lost
    assert address == proxy.address
    assert cause
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert said.count(f"connected to {proxy.address}") == 3
    assert said.count(f"lost the connection to {proxy.address}: {cause}") == 1
    broker.close()
    assert ", closed>" in shown(broker)
    assert len(lost) == 1


def test_a_callback_that_fails_is_logged_and_harms_nothing(
    connect: Connect, node: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(address: str) -> None:
        raise RuntimeError(address)

    broker = connect(node(2).pubsub_address, on_connect=fail)
    eventually(lambda: "a callback for the connection" in caplog.text, within=SOON)
    broker.publish("t", b"1", timeout=SOON)
