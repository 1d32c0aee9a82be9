"""However nodes find each other, they become the same cluster, and stay it while what they find each other by is gone.

What becomes of a cluster whose nodes and agents are killed or hang, or whose directory lies, is seen in
tests/simulation/test_nodes.py.
"""

from __future__ import annotations

import skywalker
from tests.cluster.clusters import Cluster, Consul, Dns
from tests.cluster.meeting import assert_calls_go_on
from tests.discovery import consul_agent, dns_server
from tests.discovery.consul_agent import ConsulAgent
from tests.discovery.dns_server import DnsServer
from tests.helpers import eventually

SERVICE = "skywalker-cluster"

OUT_S = 1.2
"""Seconds until a test sees that the others are without a node that drains, on cores that they share with it."""

BACK_S = 15.0
"""Seconds until a node is in the ring again once a server that was away is back, which is asked now and then."""


def assert_found_and_left(cluster: Cluster) -> None:
    """Have nodes find each other, and one go and come back."""
    cluster.start()
    assert_calls_go_on(cluster, "all")
    cluster.nodes[0].drain()
    cluster.settle(cluster.nodes[1:], within=OUT_S)
    cluster.nodes[0].wait_for_end(10)
    assert_calls_go_on(cluster, "two")


def assert_goes_on_without_server(cluster: Cluster) -> None:
    """What finds the nodes is gone: calls go on, and a node that dies is known to be dead all the same."""
    assert_calls_go_on(cluster, "gone")
    cluster.nodes[2].kill()
    cluster.settle()
    assert_calls_go_on(cluster, "dead")


def test_by_consul() -> None:
    consul_agent.require()
    with ConsulAgent() as consul, Cluster(3, drain_timeout_s=2.0) as cluster:

        def passing() -> int:
            return len(consul.ask(f"/v1/health/service/{SERVICE}?passing"))

        cluster.discovery = Consul(consul.address, SERVICE)
        assert_found_and_left(cluster)
        assert passing() == 2
        cluster.revive(cluster.nodes[0])
        cluster.settle()
        consul.kill()
        assert_goes_on_without_server(cluster)
        consul.start()  # without a memory: nobody who lives may be put out of the ring for that
        eventually(lambda: passing() == 2, 30)
        assert cluster.is_settled()
        cluster.revive(cluster.nodes[2])
        cluster.settle(within=BACK_S)
        assert cluster.nodes[1].log.count("event=discovery-failed") == 1, "an outage is said once"
        with skywalker.connect(cluster.discovery.where) as client:
            assert client.ping()


def test_by_dns() -> None:
    dns_server.require()
    with DnsServer() as dns, Cluster(3, drain_timeout_s=2.0) as cluster:
        cluster.discovery = Dns(dns, cluster.nodes)
        assert_found_and_left(cluster)
        cluster.revive(cluster.nodes[0])
        cluster.settle()
        ring = cluster.snapshot().version
        dns.stop()
        assert_goes_on_without_server(cluster)
        dns.start()
        cluster.revive(cluster.nodes[2])
        cluster.settle(within=BACK_S)
        assert cluster.snapshot().version == ring, "it has its tokens still"
