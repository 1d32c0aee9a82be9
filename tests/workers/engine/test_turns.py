"""What one connection says beyond its share of a turn: it waits, in its order, and nothing of it is lost."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import (
    TIMED_OUT,
    Clients,
    ConnectionEnded,
    WireClient,
    call,
    clients_of,
    packed,
    raw_call,
    refusal,
)

MANY = 2560
"""Calls for ten turns."""

MAX_TOO_FAST = 16
"""Refusals in a row before a connection rests."""


@pytest.fixture
def node() -> Iterator[Node]:
    with simulated(output_bytes="1KiB", subscriber_buffer="64KiB") as node:
        yield node


@pytest.fixture
def connect(node: Node) -> Iterator[Clients]:
    with clients_of(node.address) as clients:
        yield clients


def test_calls_beyond_a_turn_take_effect_in_their_order(connect: Clients) -> None:
    client = connect()
    client.write(b"".join(call(":send!", number, 60_000, "order", number) for number in range(MANY)))
    client.write(b"".join(call(":recv!", number, 60_000, "order") for number in range(MANY)))
    replies = client.replies(2 * MANY)
    assert [result for method, _, result in replies if method == ":recv!"] == [*range(MANY)]
    assert [id for method, id, _ in replies if method == ":send!"] == [*range(MANY)]


def test_all_that_was_said_before_its_end_takes_effect(connect: Clients) -> None:
    publisher, listener = connect(), connect()
    publisher.write(call(":send!", 1, 0, "end", 1) * MANY + call(":hello", "last", {"name": "x"}))
    publisher.socket.shutdown(socket.SHUT_WR)
    assert [reply[2] for reply in publisher.replies(MANY)] == [TIMED_OUT] * MANY
    assert publisher.reply()[1] == "last"
    publisher.wait_for_end()
    assert listener.ask(":ping", 1) is True


def test_one_who_reads_nothing_is_answered_later_and_in_whole(connect: Clients) -> None:
    client = connect(receive_buffer=4096)
    client.write(call(":tokens", 1) * 3000)
    assert connect().ask(":ping", 1) is True
    assert len(client.replies(3000, within=20.0)) == 3000


def test_one_that_is_refused_again_and_again_rests_and_is_answered_nevertheless() -> None:
    with simulated(max_rate=1) as node, clients_of(node.address) as connect:
        client = connect()
        assert client.ask(":ping", 0) is True
        # Just as many as bring about a rest, with nothing behind them, and then some more.
        for more in (0, 1, MAX_TOO_FAST + 1):
            count = MAX_TOO_FAST + more
            client.write(call(":cancel", 1, 2) + call(":ping", 1) * count)
            replies = client.replies(1 + count)
            assert len(replies) == 1 + count
            assert any(reply[2] is not True and refusal(reply).code == "busy" for reply in replies[1:])


def test_a_value_for_more_subscriptions_than_a_connection_can_take_cuts_it_off_and_nobody_else(
    connect: Clients,
) -> None:
    greedy, modest, sender = connect(), connect(), connect()
    count = 2000
    greedy.write(b"".join(call(":subscribe", id, "greedy") for id in range(count)))
    greedy.replies(count)
    modest.ask(":subscribe", 1, "greedy")
    sender.write(call(":send!", 1, 5000, "greedy", b"x" * 60_000))
    assert modest.reply()[2] == b"x" * 60_000
    assert sender.reply()[2] is True
    with pytest.raises((ConnectionEnded, ConnectionError)):
        greedy.replies(count)


def test_calls_that_wait_for_their_turn_are_answered_by_a_node_that_ends() -> None:
    with simulated(2, drain_timeout_s=0.2, harmed=True) as node, WireClient.open(node.address) as client:
        client.greet()
        with node.hung(client):
            client.write(call(":recv!", 1, 60_000, "drain") * MANY)
            node.signal(signal.SIGTERM)
            CLOCK.sleep(0.15)  # both are there when the worker looks
        assert {refusal(reply).code for reply in client.replies(MANY)} == {"draining"}


def test_options_with_keys_that_are_no_text_are_none(connect: Clients) -> None:
    client = connect()
    client.write(raw_call(packed(":hello"), b"\x01", b"\x81\x01\xc0"))
    assert client.refusal().code == "bad-frame"
    assert client.ask(":hello", 2, {"name": "x"})["node"]
