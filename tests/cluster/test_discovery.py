"""However nodes find each other, they become the same cluster, and stay one whatever becomes of them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.cluster.clusters import SETTLE_S, Cluster
from tests.cluster.meeting import meet
from tests.cluster.network import Network
from tests.cluster.test_outages import assert_calls_go_on
from tests.cluster.test_partitions import CUT_S, HEAL_S, host
from tests.cluster.ways import WAYS, find_by
from tests.helpers import eventually, time_factor

OUT_S = 0.5
"""Seconds until the others are without a node that was killed."""

LOOK_S = 0.7
"""Seconds that it takes a test to see so, at most, on cores that the nodes and the tests share."""

BACK_S = 2.0
"""Seconds from the start of a node, which has been in the cluster before, until it is in it again."""


def back_s(way: str) -> float:
    """Return how long that may take: Consul may be just about to find out that the node was dead."""
    return SETTLE_S if way == "consul" else BACK_S


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Return how the nodes find each other."""
    return str(request.param)


@pytest.fixture
def cluster(way: str, closing: contextlib.ExitStack) -> Iterator[Cluster]:
    """Three nodes that find each other so, and have."""
    with Cluster(3, drain_timeout_s=2.0) as cluster:
        find_by(way, cluster, closing)
        cluster.start()
        yield cluster


def test_all_find_each_other_and_whoever_drains_is_out_at_once(way: str, cluster: Cluster) -> None:
    assert_calls_go_on(cluster, "all")
    for leaver in cluster.nodes:
        began = time.monotonic()
        leaver.drain()
        cluster.settle([node for node in cluster.nodes if node is not leaver], within=OUT_S + LOOK_S)
        assert time.monotonic() - began < (OUT_S + LOOK_S) * time_factor()
        leaver.wait_for_end(10)
        assert_calls_go_on(cluster, f"without {leaver.name}")
        cluster.revive(leaver)
        cluster.settle(within=back_s(way))
    assert_calls_go_on(cluster, "again")


def test_whoever_is_killed_is_out_soon_and_in_again_at_its_place(way: str, cluster: Cluster) -> None:
    ring = cluster.snapshot().version
    # The one that the others may have been told of first comes last.
    for victim in reversed(cluster.nodes):
        victim.kill()
        cluster.settle(within=OUT_S + LOOK_S)
        assert_calls_go_on(cluster, f"without {victim.name}")
        cluster.revive(victim)
        cluster.settle(within=back_s(way))
        assert cluster.snapshot().version == ring, "it has its tokens still"


def test_a_cluster_that_has_died_is_one_again(cluster: Cluster) -> None:
    ring = cluster.snapshot().version
    for node in cluster.nodes:
        node.kill()
    cluster.start(*reversed(cluster.nodes))
    assert cluster.snapshot().version == ring


def test_an_agent_that_is_killed_is_missed_by_nobody(cluster: Cluster) -> None:
    ring = cluster.snapshot().version
    for _ in range(2):
        agents = [node.agent_pid() for node in cluster.nodes]
        for agent in agents:
            assert agent is not None
            os.kill(agent, signal.SIGKILL)
        assert_calls_go_on(cluster, "orphans")
        for node, before in zip(cluster.nodes, agents, strict=True):
            eventually(lambda node=node, before=before: node.agent_pid() not in (None, before))
    # Whoever dies now is found out by the new ones.
    assert cluster.is_settled()
    assert cluster.snapshot().version == ring
    cluster.nodes[0].kill()
    cluster.settle()
    assert_calls_go_on(cluster, "two")
    for node in cluster.nodes[1:]:
        rings = [line for line in node.log.splitlines() if "event=ring" in line]
        assert f"version={ring}" in rings[-2], "from the old agent to the new one the ring did not change"
    # And whoever comes finds them.
    cluster.revive(cluster.nodes[0])
    cluster.settle()
    assert cluster.snapshot().version == ring


def test_an_agent_that_hangs_is_missed_by_nobody(cluster: Cluster) -> None:
    ring = cluster.snapshot().version
    hung = cluster.nodes[0]
    agent = hung.agent_pid()
    assert agent is not None
    os.kill(agent, signal.SIGSTOP)
    began = time.monotonic()
    while time.monotonic() - began < 5:  # for longer than anybody waits for a sign of life
        assert_calls_go_on(cluster, "hung")
        assert cluster.is_settled()
    os.kill(agent, signal.SIGCONT)
    assert cluster.snapshot().version == ring
    # It sees who goes and who comes as before.
    cluster.nodes[1].kill()
    cluster.settle()
    cluster.revive(cluster.nodes[1])
    cluster.settle()
    assert hung.agent_pid() == agent
    rings = [line for line in hung.log.splitlines() if "event=ring" in line]
    assert f"version={ring}" in rings[-1]


def test_a_node_that_hangs_for_long_is_in_again_when_it_goes_on(way: str, cluster: Cluster) -> None:
    hung = cluster.nodes[2]
    hung.freeze()
    cluster.settle(within=CUT_S)
    assert_calls_go_on(cluster, "hung")
    time.sleep(1)  # no condition to wait for: nobody waits for a sign of life any more
    hung.thaw()
    # Consul asks for its health every 5 s.
    cluster.settle(within=SETTLE_S if way == "consul" else HEAL_S)
    assert_calls_go_on(cluster, "all")


def test_a_cut_heals(way: str, net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(4, machines=net.hosts[:4]) as cluster:
        find_by(way, cluster, closing, net.hosts[4])
        cluster.start()
        ring = cluster.snapshot().version
        one, other = cluster.nodes[:2], cluster.nodes[2:]
        # What they find each other by, if that is somewhere, is on one side.
        net.isolate(*map(host, other))
        cluster.settle(one, CUT_S)
        cluster.settle(other, CUT_S)
        for a, b in (one, other):
            with a.client() as sender, b.client() as receiver:
                meet(sender, receiver, [f"cut-{number}" for number in range(20)])
        time.sleep(1)  # no condition to wait for: nobody waits for a sign of life any more
        assert cluster.is_settled(one)
        assert cluster.is_settled(other)
        net.heal()
        cluster.settle(within=SETTLE_S)
        assert cluster.snapshot().version == ring
        assert_calls_go_on(cluster, "healed")
