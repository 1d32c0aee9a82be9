"""A link between nodes, spoken byte by byte: what it says, and that nonsense over it costs nobody else anything."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from tests.helpers import eventually
from tests.workers.nodes import Node, running
from tests.workers.wire_client import ConnectionEnded, WireClient, packed, refusal
from workers.messages import (
    ALSO,
    BUSY,
    CENSUS,
    COUNTED,
    GIVE,
    LAGGED,
    LISTEN,
    LOST,
    MET,
    RECALL,
    SEND,
    TOOK,
    VERSION,
    WITHDRAW,
    WITHDRAWN,
)  # fmt: skip


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with running(1, waiting_bytes="1MiB", mesh_bytes="1MiB") as node:
        yield node


class Guest:
    """A worker of another node, as far as this one can tell."""

    def __init__(self, node: Node, /, **wrong: Any) -> None:
        self.client = WireClient.open(node.address)
        greeting = self.client.ask(":hello", 0, {})
        options = {"from": "guest", "by": 0, "node": greeting["node"], "worker": 0, "version": VERSION}
        self.client.call(":peer", 0, options | wrong)
        self.met = self.client.reply()
        self._input = bytearray()

    def say(self, *elements: Any) -> None:
        body = packed(elements)
        self.write(len(body).to_bytes(4, "big") + body)

    def write(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            self.client.socket.sendall(data)

    def hear(self) -> list[Any]:
        while len(self._input) < 4 or len(self._input) < 4 + int.from_bytes(self._input[:4], "big"):
            data = self.client.socket.recv(65536)
            if not data:
                raise ConnectionEnded(bytes(self._input))
            self._input += data
        end = 4 + int.from_bytes(self._input[:4], "big")
        message: list[Any] = msgpack.unpackb(bytes(self._input[4:end]), strict_map_key=False)
        del self._input[:end]
        if message[0] == CENSUS:  # a guest whose node is not on the ring is asked whether it lives
            self.say(COUNTED, message[1], b"")
            return self.hear()
        return message

    def is_cut_off(self) -> bool:
        with contextlib.suppress(TimeoutError):
            try:
                while self.client.socket.recv(65536):
                    pass
            except ConnectionError:
                pass
            return True
        return False


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


def test_a_send_over_a_link_meets_a_receiver_and_is_told_so(guest: Guest, client: WireClient) -> None:
    guest.say(SEND, 1, 0.0, "a", "hi")
    assert client.ask(":recv!", 7, 5000, "a") == "hi"
    assert guest.hear() == [MET, 1]


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


def test_a_value_that_was_given_over_a_link_that_breaks_waits_again(guest: Guest, client: WireClient) -> None:
    guest.say(LISTEN, 1, 0.0, "c", None)
    client.wait_until("c", receivers=1)
    client.call(":send!", 1, 5000, "c", "hi")
    assert guest.hear() == [GIVE, 1, "hi"]
    guest.client.reset()
    client.call(":recv!", 2, 5000, "c")
    assert sorted(client.replies(2)) == [[":recv!", 2, "hi"], [":send!", 1, True]]


def test_a_call_is_let_go_when_it_is_asked_back(guest: Guest, client: WireClient) -> None:
    guest.say(SEND, 1, 0.0, "d", "hi")
    client.wait_until("d", senders=1)
    guest.say(WITHDRAW, 1, False)
    assert guest.hear() == [WITHDRAWN, 1]
    assert client.info("d")["senders"] == 0


def test_calls_over_a_link_that_breaks_wait_no_more(guest: Guest, client: WireClient) -> None:
    for number in range(100):
        guest.say(SEND, number, 0.0, "e", "hi")
    client.wait_until("e", senders=100)
    guest.client.reset()
    client.wait_until("e", senders=0)


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


NONSENSE = [
    b"\xff\xff\xff\xff",  # four gigabytes to come
    b"\x00\x02\x00\x00" + bytes(0x20000),
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x01\xc1",
    b"\x00\x00\x00\x01\x90",
    *(
        len(packed(message)).to_bytes(4, "big") + packed(message)
        for message in [
            5,
            [],
            [SEND],
            [SEND, 1],
            [SEND, 1, "yesterday", "t", "v"],
            [SEND, 1, None, "t", "v"],
            [SEND, 1, 0.0, "t"],
            [LISTEN, 1, 0.0, "t"],
            [LISTEN],
            [WITHDRAW, 1],
            [TOOK],
            [CENSUS, 1],
            [GIVE],
            [MET],
            [COUNTED, 1],
        ]
    ),
]


@pytest.mark.parametrize("data", NONSENSE, ids=lambda data: data[:12].hex())
def test_nonsense_ends_the_link_or_nothing(node: Node, guest: Guest, client: WireClient, data: bytes) -> None:
    guest.say(LISTEN, "ours", 0.0, "nonsense", None)
    guest.write(data + bytes(100_000) if data[:1] == b"\xff" else data)
    assert client.ask(":ping", 1) is True
    guest.client.reset()
    client.wait_until("nonsense", receivers=0)


def test_one_number_for_two_calls_ends_the_link(guest: Guest, client: WireClient) -> None:
    guest.say(SEND, 1, 0.0, "h", "one")
    guest.say(SEND, 1, 0.0, "i", "two")
    assert guest.is_cut_off()
    client.wait_until("h", senders=0)
    client.wait_until("i", senders=0)


def test_a_time_that_is_no_number_orders_nothing(guest: Guest, client: WireClient) -> None:
    for number, since in enumerate((float("nan"), float("inf"), float("-inf"), -1e300)):
        guest.say(SEND, number, since, "j", number)
    client.wait_until("j", senders=4)
    assert sorted(client.ask(":recv!", 1, 5000, "j") for _ in range(4)) == [0, 1, 2, 3]


def test_words_about_calls_that_nobody_knows_are_let_be(guest: Guest, client: WireClient) -> None:
    for kind in (WITHDRAW, TOOK, LOST, MET, WITHDRAWN, BUSY, RECALL, LAGGED + 1, 99):
        guest.say(kind, 77, False)
    guest.say(SEND, 1, 0.0, "k", "hi")
    assert client.ask(":recv!", 1, 5000, "k") == "hi"


def test_random_bytes_never_harm_the_node(node: Node, client: WireClient) -> None:
    luck = random.Random(1)
    whole = [msgpack.packb([kind, 1, 0.0, "l", "v"]) for kind in range(1, LAGGED + 1)]
    for _ in range(150):
        guest = Guest(node)
        for _ in range(luck.randrange(1, 20)):
            body = bytearray(luck.choice(whole))
            for _ in range(luck.randrange(3)):
                body[luck.randrange(len(body))] = luck.randrange(256)
            guest.write(len(body).to_bytes(4, "big") + body)
        if luck.random() < 0.5:
            guest.write(os.urandom(50))
        guest.client.reset()
    assert client.ask(":ping", 1) is True
    eventually(lambda: client.info("l")["senders"] == client.info("l")["receivers"] == 0)


def test_a_guest_that_asks_and_never_reads_is_cut_off(node: Node, guest: Guest, client: WireClient) -> None:
    question = packed([CENSUS, 1, "m"])
    many = (len(question).to_bytes(4, "big") + question) * 50_000
    with contextlib.suppress(TimeoutError, ConnectionError):
        for _ in range(10):
            guest.client.socket.sendall(many)
    eventually(lambda: "does not read the answers" in node.log)
    assert client.ask(":ping", 1) is True
    assert guest.is_cut_off()


@pytest.mark.parametrize("address", ["x" * 301, "x" * 4075, "host:0", "a b:c:d", ""], ids=len)
def test_a_join_that_names_no_address_costs_its_sender_only(address: str) -> None:
    with running(1, join="127.0.0.1:1") as node, WireClient.open(node.address) as client:
        client.call(":join", 1, address)
        if address:
            assert client.refusal().code == "bad-frame"
        else:
            assert client.reply() == [":join", 1, True], "nothing stands for the usual host and port, as everywhere"
        assert client.ask(":ping", 2) is True
