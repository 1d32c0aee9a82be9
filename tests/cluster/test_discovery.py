"""However nodes find each other, they become the same cluster, and are it again when the network was cut.

What becomes of a cluster whose nodes and agents are killed or hang is seen in tests/simulation/test_nodes.py.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.cluster.clusters import SETTLE_S, Cluster
from tests.cluster.meeting import meet
from tests.cluster.network import Network
from tests.cluster.test_outages import assert_calls_go_on
from tests.cluster.test_partitions import CUT_S, host
from tests.cluster.ways import WAYS, find_by
from tests.helpers import time_factor

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
