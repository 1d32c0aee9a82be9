"""A worker ends that links pass, or that is linked through others: it does not wait for what never comes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest

from tests.helpers import CLOCK
from tests.simulation.processes import Process
from tests.workers.pubsub_bus import Bus
from tests.workers.staged import Node, bus_of, simulated_nodes
from tests.workers.wire_client import Clients, WireClient

LONG_MS: Final = 60_000

LEAVES_IN_S: Final = 0.5
"""Seconds for a worker to end whose calls are over: those who are connected to it have READ_WITHIN_S of them."""


@contextmanager
def two_nodes() -> Iterator[tuple[list[Node], Bus, list[Clients]]]:
    """Yield two nodes of two workers, whose first links are over, with ways to connect to each."""
    with simulated_nodes(2, max_links=1, link_idle_s=0.2) as nodes, ExitStack() as stack:
        CLOCK.sleep(1.0)
        connect = [Clients(node.address) for node in nodes]
        for each in connect:
            stack.callback(each.close)
        yield nodes, bus_of(nodes), connect


def process(node: Node, slot: int) -> Process:
    """Return that which is in a slot."""
    return next(each for each in node._node.workers() if each.slot == slot)


def drain(node: Node, slot: int) -> None:
    """Have one worker drain alone, which must not take long."""
    pid = process(node, slot).pid
    node.kill(pid, signal.SIGTERM)
    assert node.stage.until(lambda: pid not in node.pids(), LEAVES_IN_S), node.log


def test_one_that_relays_and_drains_alone_does_not_wait_for_those_who_wait_for_its_successor() -> None:
    with two_nodes() as (nodes, bus, connect):
        listener, topic = connect[0](worker=0), bus.topic(3)
        listening = listener.begin(":recv!", LONG_MS, topic)
        listener.wait_until(topic, receivers=1)
        assert process(nodes[0], 1).reached
        drain(nodes[0], 1)
        with WireClient.open(nodes[1].address) as sender:
            assert sender.ask(":send!", 1, LONG_MS, topic, "value") is True
        assert listener.result(listening) == "value"


@pytest.mark.parametrize("subscribes", [False, True])
def test_one_to_whom_a_link_is_relayed_ends_it_at_once_or_keeps_it_for_its_subscribers(subscribes: bool) -> None:
    with two_nodes() as (nodes, bus, connect):
        client, listener = connect[0](worker=0), connect[1](worker=1)
        topic, theirs = bus.topic(0), bus.topic(3)
        listening = listener.begin(":recv!", LONG_MS, topic)
        listener.wait_until(topic, receivers=1)
        if subscribes:
            assert client.ask(":subscribe", 1, theirs) is True
        else:
            client.close()
        assert process(nodes[1], 0).reached
        drain(nodes[0], 0)
        with WireClient.open(nodes[1].address) as sender:
            assert sender.ask(":send!", 1, LONG_MS, topic, "value") is True
        assert listener.result(listening) == "value"


def test_two_that_leave_do_not_wait_for_each_other_though_each_relays_what_clients_of_the_other_subscribe_to() -> None:
    with two_nodes() as (nodes, bus, connect):
        for slot in (0, 1):
            client = connect[0](worker=slot)
            assert client.ask(":subscribe", 1, bus.topic(3 - slot)) is True
        leavers = [process(nodes[0], slot) for slot in (0, 1)]
        assert all(each.reached for each in leavers)
        nodes[0].signal(signal.SIGTERM)
        assert nodes[0].stage.until(lambda: all(each.program._hub.standing.leaving for each in leavers), 5.0)
        nodes[0].wait(LEAVES_IN_S)
