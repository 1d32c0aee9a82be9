"""What finds the nodes of a cluster dies, hangs or lies, and the calls go on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from skywalker.address import Address
from tests.clients.proxy import Proxy
from tests.cluster.clusters import Cluster, Consul, Dns
from tests.cluster.meeting import assert_met, begin, meet
from tests.cluster.ways import SERVICE
from tests.discovery import consul_agent, dns_server
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.dns_server import DnsServer
from tests.helpers import eventually, time_factor

EVERY = [f"topic-{number}" for number in range(60)]


@pytest.fixture
def consul() -> Iterator[ConsulAgent]:
    consul_agent.require()
    with ConsulAgent() as agent:
        yield agent


@pytest.fixture
def dns() -> Iterator[DnsServer]:
    dns_server.require()
    with DnsServer() as server:
        yield server


def assert_calls_go_on(cluster: Cluster, about: str) -> None:
    """Assert that pairs meet through every two nodes that live."""
    live = cluster.live
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(node.client()) for node in live]
        for number, sender in enumerate(clients):
            receiver = clients[(number + 1) % len(clients)]
            meet(sender, receiver, [f"{about}-{number}-{topic}"[:32] for topic in EVERY])


def passing(consul: ConsulAgent) -> int:
    """Return how many nodes Consul says are well."""
    return len(consul.ask(f"/v1/health/service/{SERVICE}?passing"))


def _until(check: Callable[[], bool], within: float) -> None:
    """Like eventually(), but what `check` raises is no "not yet"."""
    deadline = time.monotonic() + within * time_factor()
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def by_consul(consul: ConsulAgent) -> Iterator[Cluster]:
    """Three nodes that a Consul knows."""
    with Cluster(3) as cluster:
        cluster.discovery = Consul(consul.address, SERVICE)
        cluster.start()
        yield cluster


def test_nodes_find_each_other_in_consul_and_leave_it_when_they_drain(by_consul: Cluster, consul: ConsulAgent) -> None:
    assert_calls_go_on(by_consul, "all")
    by_consul.nodes[0].drain()
    by_consul.nodes[0].wait_for_end(10)
    assert passing(consul) == 2
    by_consul.settle()
    assert_calls_go_on(by_consul, "two")
    by_consul.revive(by_consul.nodes[0])
    by_consul.settle()


def test_consul_is_killed_and_comes_back_without_a_memory(by_consul: Cluster, consul: ConsulAgent) -> None:
    ring = by_consul.snapshot().version
    consul.kill()
    assert_calls_go_on(by_consul, "gone")
    assert {node.snapshot().version for node in by_consul.nodes} == {ring}
    # A node that dies is known to be dead all the same.
    by_consul.nodes[2].kill()
    by_consul.settle()
    assert_calls_go_on(by_consul, "dead")
    consul.start()

    def is_known_again() -> bool:
        # In development mode it forgets all. Nobody who lives may be put out of the ring for that.
        assert by_consul.is_settled()
        return passing(consul) == 2

    _until(is_known_again, 30)
    by_consul.revive(by_consul.nodes[2])
    by_consul.settle()
    assert_calls_go_on(by_consul, "back")
    for node in by_consul.nodes[:2]:
        assert node.log.count("event=discovery-failed") == 1, "an outage is said once"


def test_consul_hangs(by_consul: Cluster, consul: ConsulAgent) -> None:
    with consul.frozen():
        assert_calls_go_on(by_consul, "hung")
        by_consul.nodes[1].kill()
        by_consul.settle()
        assert_calls_go_on(by_consul, "dead")
        # It ends in time although it cannot say goodbye.
        by_consul.nodes[2].drain()
        by_consul.nodes[2].wait_for_end(5 + 5)
        by_consul.settle()
    by_consul.revive(by_consul.nodes[1])
    by_consul.settle(within=15)


def test_consul_is_behind_a_proxy_that_stalls(consul: ConsulAgent) -> None:
    with Proxy(consul.address.host, consul.address.port) as proxy, Cluster(3) as cluster:
        cluster.discovery = Consul(Address.parse(proxy.address), SERVICE)
        cluster.start()
        proxy.stall()
        assert_calls_go_on(cluster, "slow")
        cluster.nodes[0].kill()
        cluster.settle()
        assert_calls_go_on(cluster, "dead")
        proxy.flow()
        cluster.revive(cluster.nodes[0])
        cluster.settle(within=15)


def test_consul_says_that_a_dead_node_is_well(by_consul: Cluster, consul: ConsulAgent) -> None:
    dead = by_consul.nodes[1]
    topics = [*islice(by_consul.topics_of(dead), 20)]
    with by_consul.nodes[0].client() as a, by_consul.nodes[2].client() as b:
        begin(a, ":send!", topics)
        dead.kill()
        # Its health check has not failed yet, and somebody who lies says that it never will.
        liar = {"ID": "liar", "Name": SERVICE, "Address": "127.0.0.1", "Port": dead.port}
        consul.ask("/v1/agent/service/register", liar, method="PUT")
        by_consul.settle()
        begin(b, ":recv!", topics)
        assert_met(a, b, topics)
    assert passing(consul) >= 3
    assert_calls_go_on(by_consul, "two")


def test_consul_says_that_what_is_no_node_is_one(by_consul: Cluster, consul: ConsulAgent) -> None:
    liar = {"ID": "liar", "Name": SERVICE, "Address": consul.address.host, "Port": consul.address.port}
    consul.ask("/v1/agent/service/register", liar, method="PUT")
    eventually(lambda: all("event=cluster-trouble" in node.log for node in by_consul.nodes))
    assert by_consul.is_settled()
    assert_calls_go_on(by_consul, "all")


def test_the_dns_server_dies_and_hangs(dns: DnsServer) -> None:
    with Cluster(3) as cluster:
        cluster.discovery = Dns(dns, cluster.nodes)
        cluster.start()
        ring = cluster.snapshot().version
        with dns.frozen():
            eventually(lambda: all("event=discovery-failed" in node.log for node in cluster.nodes), within=20)
            assert_calls_go_on(cluster, "hung")
        dns.stop()
        cluster.nodes[2].kill()
        cluster.settle()
        assert_calls_go_on(cluster, "dead")
        dns.start()
        cluster.revive(cluster.nodes[2])
        cluster.settle(within=15)
        assert cluster.snapshot().version == ring, "it has its tokens still"
