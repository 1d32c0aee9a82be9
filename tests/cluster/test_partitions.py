"""Nodes on hosts of their own, whose lines are cut and healed. All else that lines do is simulated."""

from __future__ import annotations

import contextlib
from itertools import islice

from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.meeting import assert_met, begin, meet
from tests.cluster.network import Host, Network
from tests.workers.wire_client import WireClient

CUT_S = 6.0
"""Seconds until those that a cut has parted have given each other up."""

HEAL_S = 3.0
"""Seconds from the end of a cut until there is one ring again."""


def host(node: ClusterNode) -> Host:
    assert isinstance(node.machine, Host)
    return node.machine


def connect(node: ClusterNode, closing: contextlib.ExitStack) -> WireClient:
    return closing.enter_context(node.client())


def topics(cluster: Cluster, about: str, each: int = 8) -> list[str]:
    """Return topics of which each node owns as many, in the ring of now."""
    ring = cluster.snapshot()
    return [topic for node in cluster.live for topic in islice(cluster.topics_of(node, about, ring), each)]


def test_each_side_of_a_cut_goes_on_with_those_that_it_reaches(net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(4, machines=net.hosts) as cluster:
        cluster.start()
        one, other = cluster.nodes[:2], cluster.nodes[2:]
        clients = [connect(node, closing) for node in cluster.nodes]
        before = [topics(cluster, f"before-{side}") for side in "ab"]
        begin(clients[0], ":send!", before[0])
        begin(clients[2], ":send!", before[1])
        net.cut(map(host, one), map(host, other))
        cluster.settle(one, CUT_S)
        cluster.settle(other, CUT_S)
        # Whoever has waited since before the cut waits on this side of it now.
        begin(clients[1], ":recv!", before[0])
        assert_met(clients[0], clients[1], before[0])
        begin(clients[3], ":recv!", before[1])
        assert_met(clients[2], clients[3], before[1])
        across = [f"across-{number}" for number in range(40)]
        begin(clients[0], ":send!", across)
        begin(clients[3], ":recv!", across)
        for sender, receiver in ((0, 1), (1, 0), (2, 3), (3, 2)):
            meet(clients[sender], clients[receiver], [f"during-{sender}-{number}" for number in range(40)])
        net.heal()
        cluster.settle(within=HEAL_S)
        assert_met(clients[0], clients[3], across)
