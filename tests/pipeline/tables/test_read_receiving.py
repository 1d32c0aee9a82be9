"""The receiver: against real nodes, no value is taken that was not acknowledged, and none is given twice in calm."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

import skywalker
import skywalker.pubsub
from skywalker import embedding
from skywalker.clients import stream
from skywalker.clients.blocking.client import Client
from skywalker.pipeline.tables import receiving
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.receiving import Receiver
from skywalker.pipeline.tables.sending import Sender
from skywalker.wire import values
from tests.clients.scripted import ScriptedNode
from tests.helpers import eventually, time_factor


@pytest.fixture(scope="module")
def node() -> Iterator[embedding.Node]:
    with skywalker.embedded(workers=2, pubsub=True) as running:
        yield running


@pytest.fixture
def client(node: embedding.Node) -> Iterator[Client]:
    with node.connect() as made:
        yield made


def receiver(where: embedding.Node | str, topic: str, rows: int = receiving.DEPTH, **options: Any) -> Receiver:
    address = where if isinstance(where, str) else where.address
    name = "topics" if "," in topic else "topic"
    given = {"address": address, name: topic, **options}
    return Receiver(Reading.parse(given, streams=True), rows)


def send_all(client: Client, topic: str, count: int) -> list[Any]:
    return [client.begin("send", topic, number, timeout=30) for number in range(count)]


def take(by: Receiver, count: int, most: int = 1_000_000) -> list[int]:
    """Receive and acknowledge until there are so many."""
    got: list[int] = []
    deadline = time.monotonic() + 10 * time_factor()
    while len(got) < count and time.monotonic() < deadline:
        chunk = by.receive(0.1, min(most, count - len(got)))
        got += map(msgpack.unpackb, chunk.values)
        by.acknowledge(chunk)
    assert by.receive(0.05, 10).values == [], "more than there should be"
    return got


@pytest.mark.parametrize("method", ["take", "recv"])
@pytest.mark.parametrize("begins", ["sender", "receiver"])
def test_every_value_comes_once_and_in_order_whoever_is_there_first(
    node: embedding.Node, client: Client, method: str, begins: str
) -> None:
    topic = f"once-{method}-{begins}"
    sent = send_all(client, topic, 3000) if begins == "sender" else []
    with receiver(node, topic, method=method) as by:
        if begins == "receiver":
            by.receive(0.2, 10)
            sent = send_all(client, topic, 3000)
        got = take(by, 3000)
        assert sorted(got) == list(range(3000))
        if method == "recv" or begins == "sender":
            assert got == list(range(3000))
        assert all(call.result() for call in sent)


def test_no_more_is_handed_out_than_was_asked_for(node: embedding.Node, client: Client) -> None:
    sent = send_all(client, "few", 100)
    with receiver(node, "few") as by:
        sizes = []
        while sum(sizes) < 100:
            chunk = by.receive(5, 7)
            by.acknowledge(chunk)
            sizes.append(len(chunk))
        assert max(sizes) <= 7
    assert all(call.result() for call in sent)


def test_many_topics_share_the_calls_in_flight(node: embedding.Node, client: Client) -> None:
    topics = [f"many-{number}" for number in range(20)]
    for topic in topics:
        send_all(client, topic, 200)
    found: dict[str, list[int]] = {}
    with receiver(node, ",".join(topics), rows=10) as by:
        while sum(map(len, found.values())) < 4000:
            chunk = by.receive(5, 100_000)
            assert chunk
            for topic, values in by.grouped(chunk).items():
                found.setdefault(topic, []).extend(map(msgpack.unpackb, values))
            by.acknowledge(chunk)
    assert found == {topic: list(range(200)) for topic in topics}


def test_takers_are_of_the_group_that_was_named(node: embedding.Node, client: Client) -> None:
    with receiver(node, "g", group="a"), receiver(node, "g", group="a"), receiver(node, "g", group="b"):
        eventually(lambda: client.topic("g")["takers"] == {"a": 2 * receiving.DEPTH, "b": receiving.DEPTH})


def test_a_subscription_gets_what_is_sent_and_published(node: embedding.Node, client: Client) -> None:
    with receiver(node, "news", method="subscribe") as by, skywalker.pubsub.connect(node.pubsub_address) as broker:
        eventually(lambda: client.topic("news")["subscribers"] == 1)
        client.send("news", {"n": 1})
        broker.publish("news", b"two")
        got: list[Any] = []
        eventually(lambda: got.extend(map(msgpack.unpackb, by.receive(0.1, 10).values)) or len(got) == 2)
        assert got == [{"n": 1}, b"two"]


@pytest.mark.parametrize("method", ["take", "subscribe"])
@pytest.mark.parametrize("value", [b"\xc7\x05\xff12345", b"\xd7\xff" + b"\xff" * 8, b"\xd4\x46\x00"])
def test_a_value_of_an_extension_type_comes_as_it_is_also_if_python_has_no_form_for_it(
    node: embedding.Node, client: Client, method: str, value: bytes
) -> None:
    topic = f"extension-{method}-{value.hex()}"
    with (
        receiver(node, topic, method=method) as by,
        Sender(by._reading.settings(), 10_000, 1, missed_is_fatal=True) as to,
    ):
        eventually(lambda: any(map(client.topic(topic).get, ("takers", "subscribers"))))
        to.send([(values.pack(topic), value)])
        chunk = by.receive(10 * time_factor(), 10)
        assert chunk.values == [value]
        by.acknowledge(chunk)
        to.finish()


def test_what_a_subscription_brought_before_its_node_goes_away_is_kept() -> None:
    def leave(node: ScriptedNode) -> None:
        connection = node.next_connection()
        method, id, _ = connection.read()
        connection.write([method, id, {"extensions": ["ack"]}])
        connection.write([":message", 0, 7], [":ring", None, {"leaving": True}], [":message", 0, 8])

    with ScriptedNode() as node:
        scripted = threading.Thread(target=leave, args=(node,), daemon=True)
        scripted.start()
        with receiver(node.address, "kept", method="subscribe") as by:
            assert by.receive(5 * time_factor(), 10).values == [b"\x07", b"\x08"]
            assert not by.is_connected
        scripted.join()


def test_calls_whose_time_is_over_are_made_again(
    node: embedding.Node, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "CALL_MS", 20)
    with receiver(node, "again", rows=5) as by:
        eventually(lambda: (by.receive(0.05, 1), by.counts.timeouts)[1] >= 20)
        sent = send_all(client, "again", 30)
        assert sorted(take(by, 30)) == list(range(30))
        assert all(call.result() for call in sent)


def test_a_node_that_hangs_is_left_and_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PROBE_S", 0.3)
    with skywalker.embedded(workers=1) as node, receiver(node, "hang") as by:
        (worker,) = node.worker_pids()
        os.kill(worker, signal.SIGSTOP)
        try:
            eventually(lambda: (by.receive(0.1, 1), "silent" in by.cause)[1])
        finally:
            os.kill(worker, signal.SIGCONT)
        with node.connect() as client:
            call = client.begin("send", "hang", 1)
            assert take(by, 1) == [1]
            assert call.result()
