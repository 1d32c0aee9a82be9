"""A link between nodes, spoken byte by byte: what it says, and that nonsense over it costs nobody else anything."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from skywalker.wire import pubsub
from tests.helpers import eventually
from tests.workers.pubsub_client import PubSubClient
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import ConnectionEnded, WireClient, packed, refusal
from workers.calls.own_node import VERSION
from workers.mesh.messages import (
    CENSUS,
    OFFER,
    PUBLISH,
    SEND,
    SUBSCRIBE,
    SUBSCRIBED,
)  # fmt: skip

NUMBER = 2**40
"""One that a call may have: it takes nine bytes."""


@pytest.fixture
def node() -> Iterator[Node]:
    with simulated(1, waiting_bytes="1MiB", mesh_bytes="1MiB", pubsub=True) as node:
        yield node


class Guest:
    """A worker of another node, as far as this one can tell."""

    def __init__(self, node: Node, /, **wrong: Any) -> None:
        self.client = WireClient.open(node.address)
        greeting = self.client.ask(":hello", 0, {})
        options = {"from": "guest", "by": 0, "node": greeting["node"], "worker": 0, "version": VERSION}
        self.client.call(":peer", 0, options | wrong)
        self.met = self.client.reply()
        self._input = self.client.rest()

    def say(self, *elements: Any) -> None:
        """Say a message."""
        body = packed(elements)
        self.client.write(len(body).to_bytes(4, "big") + body)

    def hear(self) -> list[Any]:
        """Return the next message. Raises ConnectionEnded."""
        while len(self._input) < 4 or len(self._input) < (end := 4 + int.from_bytes(self._input[:4], "big")):
            data = self.client.socket.recv(1 << 20)
            if not data:
                raise ConnectionEnded(bytes(self._input))
            self._input += data
        message: list[Any] = msgpack.unpackb(self._input[4:end], strict_map_key=False)
        del self._input[:end]
        return message


@pytest.fixture
def guest(node: Node) -> Iterator[Guest]:
    guest = Guest(node)
    assert guest.met[2]["worker"] == 0
    yield guest
    guest.client.close()


@pytest.fixture
def client(node: Node) -> Iterator[WireClient]:
    with WireClient.open(node.address) as client:
        yield client


@pytest.mark.parametrize(
    "wrong",
    [{"version": VERSION + 1}, {"version": "1"}, {"node": 5}, {"worker": "0"}, {"from": None}, {"worker": None}],
    ids=str,
)
def test_who_does_not_say_what_a_node_says_is_refused(node: Node, wrong: dict[str, Any]) -> None:
    guest = Guest(node, **wrong)
    assert refusal(guest.met).code == "bad-frame"
    assert guest.client.ask(":ping", 2) is True
    guest.client.close()


@pytest.mark.parametrize("wrong", [{"worker": 1}, {"worker": -1}, {"node": "another"}], ids=str)
def test_who_wants_another_worker_is_told_who_was_met(node: Node, wrong: dict[str, Any]) -> None:
    guest = Guest(node, **wrong)
    assert guest.met[2]["worker"] == 0
    assert guest.client.ask(":ping", 2) is True, "it still speaks as a client does"
    guest.client.close()


def test_a_connection_with_calls_does_not_become_a_link(node: Node, client: WireClient) -> None:
    greeting = client.ask(":hello", 0, {})
    client.call(":recv!", 1, 60_000, "g")
    client.call(":peer", 2, {"from": "guest", "by": 0, "node": greeting["node"], "worker": 0, "version": VERSION})
    assert client.refusal().code == "bad-frame"
    client.call(":cancel", 3, 1)
    assert {client.reply()[1], client.reply()[1]} == {1, 3}


def test_a_guest_that_asks_and_never_reads_is_cut_off(node: Node, guest: Guest, client: WireClient) -> None:
    question = packed([CENSUS, NUMBER, "m"])
    many = (len(question).to_bytes(4, "big") + question) * 50_000
    with contextlib.suppress(TimeoutError, ConnectionError):
        for _ in range(10):
            guest.client.socket.sendall(many)
    eventually(lambda: "does not read the answers" in node.log)
    assert client.ask(":ping", 1) is True
    with pytest.raises(ConnectionError):
        [*iter(guest.hear, None)]


# What is published, and who subscribes.


@contextlib.contextmanager
def subscriber_of(node: Node, topic: bytes, *, typed: bool = False) -> Iterator[PubSubClient]:
    """Yield a client of the pub/sub dialect that subscribes to a topic."""
    with PubSubClient.open(node.pubsub) as subscriber:
        subscriber.subscribe(topic, typed=typed)
        yield subscriber


HUGE = b"v" * 66_000


def assert_subscribers_survive(node: Node, topic: bytes, *messages: list[Any]) -> None:
    """Say nonsense over a link of its own while others subscribe and wait: they get only what can be read."""
    guest = Guest(node)
    with (
        contextlib.closing(guest.client),
        subscriber_of(node, topic) as plain,
        subscriber_of(node, topic, typed=True) as typed,
        subscriber_of(node, b"elsewhere") as publisher,
        WireClient.open(node.address) as client,
    ):
        for message in messages:
            guest.say(*message)
        # The guest's part is done when it was answered, or cut off.
        with contextlib.suppress(ConnectionEnded, ConnectionError):
            guest.say(SUBSCRIBE, "done", 0)
            while guest.hear() != [SUBSCRIBED, "done"]:
                pass
        publisher.publish(topic, b"the end")
        for subscriber in (plain, typed):
            while (message_ := subscriber.message()).payload != b"the end":
                assert message_.topic == topic
                if len(message_.form) == 2 and message_.form[1] & pubsub.COMPRESSED:
                    pubsub.inflate(message_.payload)
        assert client.ask(":ping", 1) is True
        guest.client.close()
        client.wait_until(topic.decode(), subscribers=2)


@pytest.mark.parametrize(
    "message",
    [[PUBLISH, NUMBER, "x", HUGE, None], [OFFER, "x", None, HUGE, None], [SEND, NUMBER, 0.0, "x", HUGE]],
    ids=lambda message: str(message[0]),
)
def test_a_value_that_no_subscriber_can_get_costs_nobody_else_anything(node: Node, message: list[Any]) -> None:
    assert_subscribers_survive(node, b"x", message)


@pytest.mark.parametrize("address", ["x" * 301, "x" * 4075, "host:0", "a b:c:d", ""], ids=len)
def test_a_join_that_names_no_address_costs_its_sender_only(address: str) -> None:
    with simulated(1, join="127.0.0.1:1") as node, WireClient.open(node.address) as client:
        client.call(":join", 1, address)
        if address:
            assert client.refusal().code == "bad-frame"
        else:
            assert client.reply() == [":join", 1, True], "nothing stands for the usual host and port, as everywhere"
        assert client.ask(":ping", 2) is True
