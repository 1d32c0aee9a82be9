"""The receiver: against real nodes, no value is taken that was not acknowledged, and none is given twice in calm."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest

import skywalker
import skywalker.pubsub
from skywalker import embedding
from skywalker.clients import stream
from skywalker.clients.blocking.client import Client
from skywalker.errors import RemoteProtocolError, Unreachable
from skywalker.pipeline.tables import receiving
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.receiving import Receiver
from tests.cluster.clusters import SETTLE_S, Cluster
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


def test_a_value_that_is_not_acknowledged_goes_to_somebody_else(node: embedding.Node, client: Client) -> None:
    sent = send_all(client, "unsafe", 50)
    with receiver(node, "unsafe") as by:
        first = by.receive(5, 10)
        by.acknowledge(first)
        # The other forty have come too, or are on their way.
        eventually(lambda: len(by.receive(0.1, 10)) == 10)
        # Who leaves values unread resets its connection, and an acknowledgement that no sender has heard of by then
        # may be lost with it: its value goes to somebody else, too.
        eventually(lambda: sum(call.done() for call in sent) == 10)
    got = sorted(client.recv("unsafe", timeout=5) for _ in range(40))
    assert got == sorted({*range(50)} - {msgpack.unpackb(value) for value in first.values})
    assert all(call.result() for call in sent)
    with pytest.raises(skywalker.TimedOut):
        client.recv("unsafe", timeout=0.1)


def test_a_sender_hears_nothing_before_its_value_is_safe(node: embedding.Node, client: Client) -> None:
    (call,) = send_all(client, "held", 1)
    with receiver(node, "held") as by:
        chunk = eventually(lambda: by.receive(0.1, 10))
        client.ping()
        assert not call.done()
        by.acknowledge(chunk)
        assert call.result() is True


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


def test_two_takers_share_and_two_groups_do_not(node: embedding.Node, client: Client) -> None:
    with (
        receiver(node, "g", group="a") as one,
        receiver(node, "g", group="a") as two,
        receiver(node, "g", group="b") as other,
    ):
        eventually(lambda: client.topic("g")["takers"] == {"a": 2 * receiving.DEPTH, "b": receiving.DEPTH})
        sent = send_all(client, "g", 500)
        got: dict[str, list[int]] = {"a": [], "b": []}

        def pump() -> bool:
            for group, by in (("a", one), ("a", two), ("b", other)):
                chunk = by.receive(0.01, 1000)
                got[group] += map(msgpack.unpackb, chunk.values)
                by.acknowledge(chunk)
            return len(got["a"]) >= 500 and len(got["b"]) >= 500

        eventually(pump)
        assert {group: sorted(values) for group, values in got.items()} == {"a": [*range(500)], "b": [*range(500)]}
        assert all(call.result() for call in sent)


def test_a_subscription_gets_what_is_sent_and_published(node: embedding.Node, client: Client) -> None:
    with receiver(node, "news", method="subscribe") as by, skywalker.pubsub.connect(node.pubsub_address) as broker:
        eventually(lambda: client.topic("news")["subscribers"] == 1)
        client.send("news", {"n": 1})
        broker.publish("news", b"two")
        got: list[Any] = []
        eventually(lambda: got.extend(map(msgpack.unpackb, by.receive(0.1, 10).values)) or len(got) == 2)
        assert got == [{"n": 1}, b"two"]


def test_extension_values_are_values(node: embedding.Node, client: Client) -> None:
    odd = [msgpack.Timestamp(5), msgpack.ExtType(7, b"x"), None, [], {}]
    sent = [client.begin("send", "odd", value) for value in odd]
    with receiver(node, "odd") as by:
        got: list[bytes] = []
        while len(got) < len(odd):
            chunk = by.receive(5, 10)
            got += chunk.values
            by.acknowledge(chunk)
    assert [msgpack.unpackb(value) for value in got] == odd
    assert all(call.result() for call in sent)


def test_calls_whose_time_is_over_are_made_again(
    node: embedding.Node, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "CALL_MS", 20)
    with receiver(node, "again", rows=5) as by:
        eventually(lambda: (by.receive(0.05, 1), by.counts.timeouts)[1] >= 20)
        sent = send_all(client, "again", 30)
        assert sorted(take(by, 30)) == list(range(30))
        assert all(call.result() for call in sent)


def test_nothing_is_lost_while_the_node_is_killed_and_comes_back() -> None:
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(skywalker.embedded(workers=1))
        feed = stack.enter_context(Feed(node.address, ("restart",)))
        feed.pump(500)
        os.killpg(node.pid, signal.SIGKILL)
        stack.enter_context(skywalker.embedded(workers=1, port=node.port))
        feed.pump(500)
        assert feed.by.counts.connections == 2
        feed.end()


def test_nothing_is_lost_while_topics_move_between_nodes_and_the_readers_own_is_killed() -> None:
    with Cluster(3, workers=1) as cluster:
        first, second, third = cluster.nodes
        cluster.start(first, second)
        topics = (cluster.topic_of(first), cluster.topic_of(second))
        with Feed(",".join(node.address for node in cluster.nodes), topics) as feed:
            feed.pump(300)
            cluster.revive(third)
            eventually(cluster.is_settled, within=SETTLE_S)
            feed.pump(300)
            home = next(node for node in cluster.nodes if str(feed.by._finder.address) == node.address)
            home.kill()
            feed.pump(300)
            assert feed.by.counts.connections >= 2
            feed.end()


class Feed:
    """A thread that sends numbers to topics, and a receiver; what was told to have been taken must have come."""

    def __init__(self, where: str, topics: tuple[str, ...]) -> None:
        self.by = receiver(where, ",".join(topics))
        self._where = where
        self._topics = topics
        self._got: set[int] = set()
        self._told: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Feed:
        self.by.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self.by.close()
        self._thread.join()

    def pump(self, more: int) -> None:
        """Receive so many more numbers."""
        wanted = len(self._got) + more
        self._pump(lambda: len(self._got) >= wanted)

    def end(self) -> None:
        """Have the sending end, and compare: what its sender repeated since it was told nothing may have come twice."""
        self._ended.set()
        self._pump(lambda: not self._thread.is_alive())
        assert self._got == {*self._told}

    def _pump(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20 * time_factor()
        while not until():
            assert time.monotonic() < deadline, self.by.cause
            chunk = self.by.receive(0.05, 1000)
            self._got.update(map(msgpack.unpackb, chunk.values))
            self.by.acknowledge(chunk)

    def _send(self) -> None:
        numbers = itertools.count()
        with skywalker.connect(self._where) as client:
            while not self._ended.is_set():
                some = [*itertools.islice(numbers, 50)]
                calls = [client.begin("send", self._topics[n % len(self._topics)], n, timeout=20) for n in some]
                self._told += [n for n, call in zip(some, calls, strict=True) if call.result()]


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


def test_a_node_without_acknowledgements_is_refused_by_name() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(65536)
                body = msgpack.packb([":hello", "hello", {"extensions": ["ping"]}])
                peer.sendall(len(body).to_bytes(2, "big") + body)
                peer.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RemoteProtocolError, match=f"{address} knows no acknowledg"), receiver(address, "t"):
            pass
        thread.join()


def test_where_nobody_is_the_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "CONNECT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(Unreachable, match=f"no node reachable at {address}"), receiver(address, "t"):
        pass
