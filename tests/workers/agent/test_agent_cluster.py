"""Real nodes that find each other: by a list, and by a real Consul, whatever is killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skywalker.cli.demo_cluster.ports import free_ports
from tests.discovery import consul_agent
from tests.discovery.consul_agent import ConsulAgent
from tests.helpers import eventually, time_factor
from tests.workers.processes import Node, node
from tests.workers.wire_client import Refused

Start = Callable[..., Node]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts nodes with settings of their own; all are killed at the end."""
    with contextlib.ExitStack() as stack:

        def one(name: str, *settings: str) -> Node:
            return stack.enter_context(node(workers=2, settings=[f"--name={name}", *settings]))

        yield one


@pytest.fixture
def own_consul() -> Iterator[ConsulAgent]:
    """A Consul that no other test sees."""
    consul_agent.require()
    with ConsulAgent() as agent:
        yield agent


def view(found: Node) -> tuple[str, list[str]]:
    """Return the version of the ring that a node uses, and the names in it."""
    with contextlib.closing(found.connect()) as client:
        page: dict[str, Any] = client.answer(":nodes")
        return page["version"], sorted(member["name"] for member in page["nodes"])


def agree(nodes: list[Node], *names: str, within: float = 10.0) -> float:
    """Wait until all nodes use one ring, of these; return the seconds until then."""
    begun = time.monotonic()

    def they_do() -> bool:
        views = [view(each) for each in nodes]
        return len({version for version, _ in views}) == 1 and views[0][1] == list(names)

    eventually(they_do, within)
    return time.monotonic() - begun


def agent_of(found: Node) -> int:
    """Return the process that is a node's agent."""
    return int(found.events("ring")[-1]["pid"])


def kill(found: Node) -> None:
    """Kill a node, all of it."""
    os.killpg(found.pid, signal.SIGKILL)
    found.process.wait()


def changes(found: Node) -> str:
    """Return what a node has logged of its rings."""
    return " ".join(event["changes"] for event in found.events("ring"))


def test_nodes_that_know_one_of_them_find_each_other_and_notice_who_goes(start: Start, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    join = f"--join=127.0.0.1:{port}"
    # Two that come before the one they know.
    a, b = start("a", join), start("b", join)
    entry = start("entry", join, f"--port={port}", f"--state-dir={tmp_path}")
    agree([a, b, entry], "a", "b", "entry")
    kill(entry)
    # Once they know each other they need it no more.
    assert agree([a, b], "a", "b") < 1.0 * time_factor()
    for worker in a.first_workers:
        os.kill(worker, signal.SIGKILL)
    a.wait_for_workers(3, without=a.first_workers)
    entry = start("entry", join, f"--port={port}", f"--state-dir={tmp_path}")
    agree([a, b, entry], "a", "b", "entry")
    assert not re.search(r"\ba \(\S+\) left", changes(b)), "its workers have died, and not the node"
    b.signal(signal.SIGTERM)
    assert agree([a, entry], "a", "entry") < 1.0 * time_factor()
    assert b.wait(10.0) == 0


def test_a_killed_agent_is_replaced_and_its_node_keeps_the_ring(start: Start, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    join = f"--join=127.0.0.1:{port}"
    nodes = [start("a", join, f"--port={port}", f"--state-dir={tmp_path}"), start("b", join), start("c", join)]
    agree(nodes, "a", "b", "c")
    version, _ = view(nodes[1])
    for _ in range(3):
        agent = agent_of(nodes[1])
        os.kill(agent, signal.SIGKILL)
        eventually(lambda gone=agent: agent_of(nodes[1]) != gone, within=10.0)
        assert view(nodes[1])[0] == version
    # It sees who comes and goes as the first one did.
    d = start("d", join)
    agree([*nodes, d], "a", "b", "c", "d")
    assert "left" not in changes(nodes[1])


def test_whoever_says_much_to_an_agent_that_is_slow_does_it_no_harm(start: Start) -> None:
    a = start("a", "--join=127.0.0.1:1")
    agent = eventually(lambda: agent_of(a))
    os.kill(agent, signal.SIGSTOP)
    for client in [a.connect() for _ in range(4)]:
        with client.in_one_write():
            joins = [client.begin(":join", f"127.7.{number % 8}.{1 + number // 8}:1") for number in range(1000)]
        for join in joins:
            with contextlib.suppress(Refused):  # busy, some of them
                client.result(join)
    eventually(lambda: a.events("hints-lost"))
    os.kill(agent, signal.SIGCONT)
    b = start("b", f"--join=127.0.0.1:{a.port}")
    agree([a, b], "a", "b")
    assert agent_of(a) == agent
    assert len(a.events("hints-lost")) == 1
    assert not a.events("agent-ended")


def test_a_copied_state_directory_makes_no_second_node(start: Start, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    (port,) = free_ports(1)
    join = f"--join=127.0.0.1:{port}"
    a = start("a", join, f"--port={port}", f"--state-dir={first}")
    second.mkdir()
    shutil.copy(first / "node.json", second)
    copy = start("copy", join, f"--state-dir={second}")
    told = eventually(lambda: [*a.events("cluster-trouble"), *copy.events("cluster-trouble")], within=10.0)
    assert any("state directory" in event["reason"] for event in told)
    assert view(a)[1] == ["a"]


def test_nodes_find_each_other_in_consul_and_go_on_without_it(start: Start, own_consul: ConsulAgent) -> None:
    settings = ("--consul", "--register", f"--consul-url=http://{own_consul.address}", "--health-bind=127.0.0.1")
    a, b, c = (start(name, *settings) for name in "abc")
    agree([a, b, c], "a", "b", "c", within=20.0)
    assert len(own_consul.ask("/v1/health/service/skywalker?passing")) == 3
    # Who drains is out of Consul, too.
    c.signal(signal.SIGTERM)
    assert agree([a, b], "a", "b") < 2.0 * time_factor()
    assert c.wait(10.0) == 0
    assert len(own_consul.ask("/v1/health/service/skywalker")) == 2
    # Without Consul the last good view is used; the dead go all the same.
    own_consul.kill()
    eventually(lambda: all(each.events("discovery-failed") for each in (a, b)), within=10.0)
    assert view(a)[1] == view(b)[1] == ["a", "b"]
    assert len(a.events("discovery-failed")) == 1
    # A new one, which knows nothing, is told who is there, and that they have all come back.
    own_consul.start()
    agree([a, b], "a", "b", within=30.0)
    d = start("d", *settings)
    agree([a, b, d], "a", "b", "d", within=30.0)


@pytest.mark.parametrize("bind", ["::1", "localhost", "0.0.0.0"])
def test_consul_asks_for_the_health_of_a_node_wherever_it_listens(
    start: Start, own_consul: ConsulAgent, bind: str
) -> None:
    start("a", "--register", f"--consul-url=http://{own_consul.address}", f"--health-bind={bind}")

    def is_well() -> bool:
        return any("200 OK" in check["Output"] for check in own_consul.ask("/v1/agent/checks").values())

    eventually(is_well, within=20.0)


def test_a_killed_agent_keeps_its_node_in_consul(start: Start, own_consul: ConsulAgent) -> None:
    settings = ("--consul", "--register", f"--consul-url=http://{own_consul.address}", "--health-bind=127.0.0.1")
    a, b = start("a", *settings), start("b", *settings)
    agree([a, b], "a", "b", within=20.0)

    def checks() -> set[str]:
        found = own_consul.ask("/v1/agent/checks").values()
        return {check["Output"] for check in found if "200 OK" in check["Output"]}

    before = eventually(lambda: len(checks()) == 2 and checks(), within=20.0)
    agent = agent_of(a)
    os.kill(agent, signal.SIGKILL)
    eventually(lambda: agent_of(a) != agent, within=10.0)
    # The new one has a port of its own, and Consul asks there.
    eventually(lambda: len(checks()) == 2 and len(checks() & before) == 1, within=20.0)
    agree([a, b], "a", "b")
    assert "left" not in changes(b)
