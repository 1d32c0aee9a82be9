"""What one connection says beyond its share of a turn: it waits, in its order, and nothing of it is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import (
    Clients,
    WireClient,
    call,
    clients_of,
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


def test_calls_that_wait_for_their_turn_are_answered_by_a_node_that_ends() -> None:
    with simulated(2, drain_timeout_s=0.2, harmed=True) as node, WireClient.open(node.address) as client:
        client.greet()
        with node.hung(client):
            client.write(call(":recv!", 1, 60_000, "drain") * MANY)
            node.signal(signal.SIGTERM)
            CLOCK.sleep(0.15)  # both are there when the worker looks
        assert {refusal(reply).code for reply in client.replies(MANY)} == {"draining"}
