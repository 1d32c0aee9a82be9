"""A node of a cluster that is told to end is found no more before it lets nobody in.

What its clients hear then, and that they meet at other nodes, is judged by the rules of simulated runs.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

import pytest

from tests.helpers import CLOCK, eventually
from tests.workers.operated import Operated
from tests.workers.staged import bus_of, simulated_nodes
from tests.workers.wire_client import code_of
from workers.ipc import exits
from workers.process.supervisor import LEAVE_S


@contextlib.contextmanager
def two_nodes(drain_timeout_s: float) -> Iterator[tuple[Operated, Operated]]:
    """Yield one that is told to end, and one that stays."""
    with simulated_nodes(2, drain_timeout_s=drain_timeout_s) as nodes:
        leaves, stays = map(Operated, nodes)
        yield leaves, stays
        for client in (*leaves.clients, *stays.clients):
            client.close()


def test_the_doors_are_open_until_the_node_is_found_no_more() -> None:
    with two_nodes(drain_timeout_s=60) as (leaves, _):
        leaves.connect().call(":recv!", 1, 60_000, "topic")  # so that it has something to wait for
        leaves.kill(leaves.node.agent, signal.SIGSTOP)
        leaves.signal(signal.SIGTERM)
        eventually(lambda: leaves.events("draining"))
        # Its agent hangs, so that it may still be found; and who finds it is let in.
        told_at = CLOCK.monotonic()
        eventually(lambda: not leaves.lets_in(), LEAVE_S + 0.1)
        assert CLOCK.monotonic() - told_at >= LEAVE_S * 0.9


def test_a_node_that_nobody_finds_any_more_lets_nobody_in_and_its_calls_go_on() -> None:
    with two_nodes(drain_timeout_s=60) as (leaves, stays):
        bus = bus_of([leaves.node, stays.node])
        topics = [bus.topic(owner) for owner in range(4)]
        here, there = leaves.connect(), stays.connect()
        calls = [here.begin(":recv!", 60_000, topic) for topic in topics]
        for topic in topics:
            there.wait_until(topic, receivers=1)
        leaves.signal(signal.SIGTERM)
        eventually(lambda: stays.node.ring() == [1, 1], 0.5)
        eventually(lambda: not leaves.lets_in(), 0.5)
        for topic in topics:
            assert there.answer(":send!", 5_000, topic, topic) is True
        assert [here.result(call) for call in calls] == topics
        assert leaves.wait(1.0) == exits.OK


@pytest.mark.parametrize("drain_timeout_s", [0.0, 0.4, 3.0])
def test_an_agent_that_hangs_keeps_a_node_for_half_its_time_at_most(drain_timeout_s: float) -> None:
    with two_nodes(drain_timeout_s) as (leaves, _):
        client = leaves.connect()
        call = client.begin(":recv!", 60_000, "topic")
        client.answer(":ping")
        leaves.kill(leaves.node.agent, signal.SIGSTOP)
        told_at = CLOCK.monotonic()
        leaves.signal(signal.SIGTERM)
        if drain_timeout_s:
            eventually(lambda: not leaves.lets_in())
            assert CLOCK.monotonic() - told_at < drain_timeout_s / 2 + 0.1
        assert code_of(client.result, call) == "draining"
        assert drain_timeout_s <= CLOCK.monotonic() - told_at < drain_timeout_s + 0.1
        assert leaves.wait(2.0) == exits.OK
