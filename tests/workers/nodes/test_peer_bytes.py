"""A link between nodes, spoken byte by byte: what it says, and that nonsense over it costs nobody else anything."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.wire import pubsub
from tests.helpers import eventually
from tests.workers.link_end import LinkEnd
from tests.workers.pubsub_client import PubSubClient, publish, publish_typed
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import ConnectionEnded, WireClient, packed, refusal
from workers.calls.own_node import VERSION
from workers.mesh.messages import (
    ALSO,
    BUSY,
    CENSUS,
    GIVE,
    LISTEN,
    LOST,
    MET,
    OFFER,
    PUBLISH,
    RECALL,
    SEND,
    SUBSCRIBE,
    SUBSCRIBED,
    TOOK,
    WITHDRAW,
    WITHDRAWN,
)  # fmt: skip


@pytest.fixture
def node() -> Iterator[Node]:
    with simulated(1, waiting_bytes="1MiB", mesh_bytes="1MiB", pubsub=True) as node:
        yield node


class Guest(LinkEnd):
    """A worker of another node, as far as this one can tell."""

    def __init__(self, node: Node, /, **wrong: Any) -> None:
        self.client = WireClient.open(node.address)
        greeting = self.client.ask(":hello", 0, {})
        options = {"from": "guest", "by": 0, "node": greeting["node"], "worker": 0, "version": VERSION}
        self.client.call(":peer", 0, options | wrong)
        self.met = self.client.reply()
        super().__init__(self.client.socket, self.client.rest())


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


def test_a_value_is_given_and_its_sender_told_once_it_was_taken(guest: Guest, client: WireClient) -> None:
    guest.say(LISTEN, 1, -0.5, "b", None)
    guest.say(LISTEN, 2, 0.0, "b", None)
    client.wait_until("b", receivers=2)
    assert client.info("b")["age"] >= 500
    client.call(":send!", 1, 5000, "b", "hi")
    assert [guest.hear(), guest.hear()] == [[GIVE, 1, "hi"], [ALSO, 2]]
    assert not client.has_input(0.05)
    guest.say(LOST, 1)
    guest.say(TOOK, 2)
    assert client.reply() == [":send!", 1, True]


def test_a_call_is_let_go_when_it_is_asked_back(guest: Guest, client: WireClient) -> None:
    guest.say(SEND, 1, 0.0, "d", "hi")
    client.wait_until("d", senders=1)
    guest.say(WITHDRAW, 1, False)
    assert guest.hear() == [WITHDRAWN, 1]
    assert client.info("d")["senders"] == 0


def test_more_calls_than_there_is_memory_for_are_refused(guest: Guest, client: WireClient) -> None:
    for number in range(300):
        guest.say(SEND, number, 0.0, "f", b"v" * 10_000)
    assert guest.hear()[0] == BUSY
    client.wait_until("f", senders=99)
    guest.client.reset()
    client.wait_until("f", senders=0)


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
    question = packed([CENSUS, 1, "m"])
    many = (len(question).to_bytes(4, "big") + question) * 50_000
    with contextlib.suppress(TimeoutError, ConnectionError):
        for _ in range(10):
            guest.client.socket.sendall(many)
    eventually(lambda: "does not read the answers" in node.log)
    assert client.ask(":ping", 1) is True
    assert guest.is_cut_off()


# What is published, and who subscribes.


@contextlib.contextmanager
def subscriber_of(node: Node, topic: bytes, *, typed: bool = False) -> Iterator[PubSubClient]:
    """Yield a client of the pub/sub dialect that subscribes to a topic."""
    with PubSubClient.open(node.pubsub) as subscriber:
        subscriber.subscribe(topic, typed=typed)
        yield subscriber


def test_what_is_published_here_is_offered_to_who_subscribes_over_a_link(node: Node, guest: Guest) -> None:
    compressed = zlib.compress(b"hi")
    with subscriber_of(node, b"elsewhere") as publisher:
        guest.say(SUBSCRIBE, "n", 3)
        assert guest.hear() == [SUBSCRIBED, "n"]
        for said, offer in (
            (publish(b"n", b"hi"), [b"hi", None]),
            (publish(b"n", b""), [b"", None]),
            (publish_typed(b"n", 7, 0, b"hi"), [b"hi", b"\x07\x00"]),
            (publish_typed(b"n", 7, 1, compressed), [None, b"\x07\x01" + compressed]),
        ):
            publisher.write(said)
            publisher.acks(1)
            assert guest.hear() == [OFFER, "n", None, *offer]
        guest.say(SUBSCRIBE, "n", 0)
        assert guest.hear() == [SUBSCRIBED, "n"]
        publisher.publish(b"n", b"too late")
        guest.say(SUBSCRIBE, "n", 1)
        assert guest.hear() == [SUBSCRIBED, "n"], "nothing came in between"


def test_the_owner_counts_as_many_subscribers_as_it_was_told_last(guest: Guest, client: WireClient) -> None:
    for count in (1, 1000, 1, 0, 0, 2**31, 5):
        guest.say(SUBSCRIBE, "o", count)
        assert guest.hear() == [SUBSCRIBED, "o"]
        assert client.info("o")["subscribers"] == count
    guest.client.reset()
    client.wait_until("o", subscribers=0)


def test_a_send_whose_time_is_over_is_asked_back(guest: Guest, client: WireClient) -> None:
    guest.say(SUBSCRIBE, "r", 1)
    guest.hear()
    client.call(":send!", 1, 20, "r", "hi")
    number = guest.hear()[2]
    assert client.reply()[1] == 1
    assert guest.hear() == [RECALL, number]
    guest.say(TOOK, number)
    assert client.ask(":ping", 2) is True, "and it was told once"


def test_sends_that_wait_are_offered_after_the_answer_oldest_first(guest: Guest, client: WireClient) -> None:
    for number in range(5):
        client.call(":send!", number, 5000, "s", number)
    client.wait_until("s", senders=5)
    guest.say(SUBSCRIBE, "s", 1)
    assert guest.hear() == [SUBSCRIBED, "s"]
    offers = [guest.hear() for _ in range(5)]
    assert [offer[3] for offer in offers] == [0, 1, 2, 3, 4]
    for _, _, number, *_ in offers:
        guest.say(TOOK, number)
    assert client.replies(5) == [[":send!", number, True] for number in range(5)]


def test_what_is_published_over_a_link_reaches_everybody_as_they_want_it(
    node: Node, guest: Guest, client: WireClient
) -> None:
    compressed = zlib.compress(b"hi")
    with subscriber_of(node, b"t") as plain, subscriber_of(node, b"t", typed=True) as typed:
        client.call(":recv!", 1, 5000, "t")
        client.wait_until("t", receivers=1, subscribers=2)
        guest.say(PUBLISH, 1, "t", None, b"\x07\x01" + compressed)
        guest.say(PUBLISH, 2, "t", b"hi", b"\x07\x00")
        guest.say(PUBLISH, 3, "t", b"hi", None)
        assert [guest.hear() for _ in range(3)] == [[MET, 1], [MET, 2], [MET, 3]]
        assert client.reply() == [":recv!", 1, b"hi"]
        assert [each.payload for each in plain.messages(3)] == [b"hi"] * 3
        assert [(each.form, each.payload) for each in typed.messages(3)] == [
            (b"\x07\x01", compressed),
            (b"\x07\x00", b"hi"),
            (b"\x00\x00", b"hi"),
        ]


def test_an_offer_to_a_topic_that_nobody_subscribes_to_is_lost(guest: Guest) -> None:
    guest.say(OFFER, "u", 5, "hi", None)
    assert guest.hear() == [LOST, 5]


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
    [[PUBLISH, 1, "x", HUGE, None], [OFFER, "x", None, HUGE, None], [SEND, 1, 0, "x", HUGE]],
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
