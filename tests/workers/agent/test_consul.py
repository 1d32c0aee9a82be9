"""Agents and a real Consul: whoever is registered is well, wherever its health is asked for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from skywalker.address import Address
from skywalker.config import Cluster
from skywalker.members import Member
from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent
from tests.helpers import eventually
from tests.workers.processes import Node, node
from workers.agent.assembly import _registration
from workers.ipc import exits


@pytest.mark.parametrize(
    ("listens", "asked"), [("0.0.0.0", "10.0.0.1"), ("::", "10.0.0.1"), ("::1", "[::1]"), ("127.0.0.1", "127.0.0.1")]
)
def test_health_is_asked_for_where_it_is_served_and_where_that_is_everywhere_at_the_nodes_address(
    listens: str, asked: str
) -> None:
    member = Member("id", "name", Address("10.0.0.1", 3443), 2, False, (1,))
    service = _registration(Cluster(), member, Address(listens, 80))._service
    assert service.health_url == f"http://{asked}:80/health"
    assert service.address == member.address


@pytest.fixture
def own_consul() -> Iterator[ConsulAgent]:
    """A Consul that no other test sees."""
    consul_agent.require()
    with ConsulAgent() as agent:
        yield agent


def agent_of(found: Node) -> int:
    """Return the process that is a node's agent."""
    return int(found.events("ring")[-1]["pid"])


def test_nodes_find_each_other_in_consul_whose_agents_are_killed_or_drain(own_consul: ConsulAgent) -> None:
    settings = ["--consul", "--register", f"--consul-url=http://{own_consul.address}"]

    def well() -> set[str]:
        """What those checks say that pass: where health is asked for, among others."""
        checks = own_consul.ask("/v1/agent/checks").values()
        return {check["Output"] for check in checks if "200 OK" in check["Output"]}

    with ExitStack() as stack:
        a, b = (
            stack.enter_context(node(workers=1, settings=[*settings, f"--health-bind={host}", f"--name={host}"]))
            for host in ("::1", "localhost")
        )

        def ring(of: Node) -> set[str]:
            with of.connect() as client:
                return {member["name"] for member in client.answer(":nodes")["nodes"]}

        eventually(lambda: ring(a) == ring(b) == {"::1", "localhost"}, within=20.0)
        before = eventually(lambda: len(found := well()) == 2 and found, within=20.0)
        first = agent_of(a)
        os.kill(first, signal.SIGKILL)
        # The new one has a port of its own, and Consul asks there.
        eventually(lambda: len(well()) == 2 and len(well() & before) == 1, within=20.0)
        assert agent_of(a) != first
        assert ring(a) == ring(b) == {"::1", "localhost"}
        b.signal(signal.SIGTERM)
        eventually(lambda: ring(a) == {"::1"}, within=5.0)
        assert b.wait(10.0) == exits.OK
        assert len(own_consul.ask("/v1/health/service/skywalker")) == 1
