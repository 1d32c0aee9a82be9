"""The agent as its supervisor sees it: snapshots out, whatever the nodes around it do.

Who counts as a node, and when, is decided in Roster, and whole agents are tried in the simulation.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from unittest import mock

import pytest

from skywalker.address import Address
from skywalker.discovery.source import StaticSource
from skywalker.members import Member
from skywalker.ring import random_tokens
from tests.helpers import eventually
from tests.workers import operated
from tests.workers.agent.lone_agent import Blocked, Registered, agent
from tests.workers.staged import simulated
from tests.workers.told_node import HOST, ToldNode
from workers.agent.agent import FORGET_S
from workers.ipc.control import Drain, Forget, Inspect, Left

ME = Member("id-me", "me", Address(HOST, 1), 1, False, tuple(random_tokens(4)))


@pytest.fixture
def nodes() -> Iterator[list[ToldNode]]:
    """Three nodes."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(ToldNode(name)) for name in ("a", "b", "c")]


def test_whoever_says_much_to_an_agent_that_is_slow_does_it_no_harm() -> None:
    with operated.node(workers=2, join="10.9.9.9:1") as running:
        slow = eventually(lambda: running.node.agent)
        running.kill(slow, signal.SIGSTOP)
        for client in [running.connect() for _ in range(4)]:
            with client.in_one_write():
                for number in range(1000):
                    client.begin(":join", f"127.7.{number % 8}.{1 + number // 8}:1")
            client.answer(":ping")
        eventually(lambda: running.events("hints-lost"))
        running.kill(slow, signal.SIGCONT)
        host, port = running.node.address
        with simulated(2, host=running.node.stage.host(), join=f"{host}:{port}") as other:
            eventually(lambda: running.node.ring() == other.ring() == [2, 2], 15.0)
        assert running.node.agent == slow
        assert len(running.events("hints-lost")) == 1


# Its life.


def test_an_agent_that_drains_is_out_of_its_own_ring_and_says_so_when_it_is_announced_nowhere() -> None:
    with ToldNode() as node, agent(ME, [node.address]) as found:
        found.wait_for(ME, node.member)
        found.say(Drain())
        found.wait_for(node.member)
        eventually(lambda: found.listen().heard == [Left()])
        found.say(Drain())
        node.push(leaving=True)
        found.wait_for(ME)
        assert found.heard == [Left()]


def test_an_agent_is_registered_until_its_node_drains() -> None:
    registered = Registered()
    with agent(ME, registration=registered) as found:
        eventually(lambda: registered.said)
        found.say(Drain())
        eventually(lambda: found.listen().heard == [Left()])
        assert registered.said[1:] == ["deregisters"]
        assert found.events("registration-failed")


@pytest.mark.parametrize("blocks", [False, True])
def test_an_agent_that_is_replaced_by_one_that_registers_otherwise_deregisters_or_ends_all_the_same(
    blocks: bool,
) -> None:
    registered = Registered(blocks=blocks)
    with agent(ME, registration=registered) as found:
        found.wait_for(ME)
        eventually(lambda: registered.said)
        found.say(Forget())
        eventually(found.has_ended, within=2 * FORGET_S)
        assert registered.said[1:] == ([] if blocks else ["deregisters"])
        assert found.listen().rings[-1].by_id == {ME.id: ME}, "the node serves on"


def test_an_agent_whose_health_nobody_could_ask_for_is_not_registered_until_they_can() -> None:
    registered = Registered()
    with socket.create_server((HOST, 0)) as taken:
        at = Address(*taken.getsockname())
        with agent(ME, registration=registered, health=at) as found:
            found.wait_for(ME)
            eventually(lambda: found.events("cannot-serve-health"))
            assert f", process {os.getpid()} of " in found.log()
            assert registered.said == []
            taken.close()
            eventually(lambda: registered.said == [f"registers {at}"], within=10.0)


def test_an_agent_that_had_no_descriptor_left_for_what_came_with_a_message_lives_and_says_so() -> None:
    with agent(ME) as found:
        found.wait_for(ME)
        found.say(Inspect(0, os.getpid()))
        eventually(lambda: "message=Inspect" in found.log())
        assert found.events("no-descriptor")
        found.say(Drain())
        eventually(lambda: found.listen().heard == [Left()])


def test_an_agent_that_meets_a_bug_in_a_thread_has_a_successor() -> None:
    with operated.node(workers=1, join="10.9.9.9:1") as running:
        first = eventually(lambda: running.node.agent)
        with mock.patch.object(StaticSource, "look", side_effect=RuntimeError("a bug")):
            running.kill(first, signal.SIGKILL)
            eventually(lambda: len(running.events("agent-ended")) > 1)
        assert running.events("bug")
        host, port = running.node.address
        with simulated(1, host=running.node.stage.host(), join=f"{host}:{port}") as other:
            eventually(lambda: running.node.ring() == other.ring() == [2], 15.0)


def test_a_blocked_source_and_a_blocked_registration_hold_up_nothing(nodes: list[ToldNode]) -> None:
    with agent(ME, Blocked(), learning=True, registration=Registered(blocks=True)) as found:
        found.hint(nodes[0].address)
        found.wait_for(ME, nodes[0].member)
        found.say(Drain())
        found.wait_for(nodes[0].member)
        assert found.listen().heard == []
