"""Nodes on hosts of their own, whose lines are cut, healed, slow or thin."""

from __future__ import annotations

import contextlib
import time
from itertools import islice

import pytest

from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.meeting import assert_met, begin, meet, results
from tests.cluster.network import Host, Network
from tests.helpers import eventually, time_factor
from tests.workers.wire_client import TIMED_OUT, WireClient

CUT_S = 6.0
"""Seconds until those that a cut has parted have given each other up."""

FORGET_S = 1.5
"""Seconds from then on until they hold nothing for each other any more."""

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


@pytest.mark.parametrize("first", ["send", "recv"])
def test_who_waits_behind_a_cut_is_in_nobodys_way(first: str, net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(3, machines=net.hosts) as cluster:
        cluster.start()
        a, b, lost = (connect(node, closing) for node in cluster.nodes)
        owned = [*islice(cluster.topics_of(cluster.nodes[0]), 20)]
        waiting = "senders" if first == "send" else "receivers"
        begin(lost, f":{first}!", owned)
        for topic in owned:
            a.wait_until(topic, **{waiting: 1})
        net.isolate(host(cluster.nodes[2]))
        cluster.settle(cluster.nodes[:2], CUT_S)
        for topic in owned:
            a.wait_until(topic, FORGET_S, **{waiting: 0})
        meet(a, b, owned)
        net.heal()
        cluster.settle(within=HEAL_S)
        # They are still there, each for whoever comes.
        begin(b, ":recv!" if first == "send" else ":send!", owned)
        assert_met(*((lost, b) if first == "send" else (b, lost)), owned)


def test_a_short_cut_costs_nothing_but_time(net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(3, machines=net.hosts) as cluster:
        cluster.start()
        ring = cluster.snapshot().version
        a, b, _ = (connect(node, closing) for node in cluster.nodes)
        every = topics(cluster, "topic")
        begin(a, ":send!", every)
        for node in cluster.nodes:
            net.isolate(host(node))
            time.sleep(0.5)  # no condition to wait for: this is how long the cut is
            net.heal()
        begin(b, ":recv!", every)
        assert_met(a, b, every)
        assert cluster.snapshot().version == ring


@pytest.mark.parametrize("heard", [True, False], ids=["it hears and is not heard", "it is heard and does not hear"])
def test_a_cut_one_way_is_a_cut(heard: bool, net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(3, machines=net.hosts) as cluster:
        cluster.start()
        a, b, c = (connect(node, closing) for node in cluster.nodes)
        waiting = topics(cluster, "waiting")
        begin(a, ":send!", waiting)
        lost, rest = [host(cluster.nodes[2])], map(host, cluster.nodes[:2])
        net.cut(*((lost, rest) if heard else (rest, lost)), both_ways=False)
        cluster.settle(cluster.nodes[:2], CUT_S)
        cluster.settle(cluster.nodes[2:], CUT_S)
        begin(b, ":recv!", waiting)
        assert_met(a, b, waiting)
        meet(c, connect(cluster.nodes[2], closing), [f"alone-{number}" for number in range(20)])
        net.heal()
        cluster.settle(within=HEAL_S)
        meet(a, c, topics(cluster, "after"))


def test_nodes_that_see_different_rings_never_forward_in_a_circle(net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(4, machines=net.hosts) as cluster:
        cluster.start()
        left, _, right, _ = cluster.nodes
        net.cut([host(left)], [host(right)])
        everybody = {node.name for node in cluster.nodes}
        views = {node.name: everybody for node in cluster.nodes}
        views[left.name], views[right.name] = everybody - {right.name}, everybody - {left.name}
        eventually(lambda: {node.name: node.sees() for node in cluster.nodes} == views, CUT_S)
        clients = [connect(node, closing) for node in cluster.nodes]
        every = [f"topic-{number}" for number in range(200)]
        began = time.monotonic()
        for client in clients:
            begin(client, ":send!", [f"{topic}-{clients.index(client)}" for topic in every], 3000)
        sent = {each: each.packets_sent() for each in map(host, cluster.nodes)}
        eventually(lambda: time.monotonic() - began > 2, 3)
        # They wait now, and nothing is said of them: pings of agents, and their answers, are all there is.
        quiet = {each.number: each.packets_sent() - sent[each] for each in sent}
        assert max(quiet.values()) < 500, quiet
        for client in clients:
            assert set(results(client, len(every), 5).values()) == {TIMED_OUT}
        assert time.monotonic() - began < 4 * time_factor()
        # Those that see the same of a topic meet on it, through whichever nodes see both.
        meet(clients[1], clients[3], every)
        net.heal()
        cluster.settle(within=HEAL_S)
        meet(clients[0], clients[2], every)


def test_calls_go_on_over_a_slow_line_that_loses_packets(net: Network, closing: contextlib.ExitStack) -> None:
    with Cluster(3, machines=net.hosts) as cluster:
        cluster.start()
        ring = cluster.snapshot().version
        a, b, c = (connect(node, closing) for node in cluster.nodes)
        means = net.worsen(host(cluster.nodes[2]), delay_ms=100, jitter_ms=30, loss_percent=5)
        for way, (sender, receiver) in enumerate(((a, b), (a, c), (c, a))):
            meet(sender, receiver, [f"{means}-{way}-{number}" for number in range(300)], 30)
        assert cluster.snapshot().version == ring, "it is slow, not dead"
        net.mend(host(cluster.nodes[2]))
        meet(a, c, topics(cluster, "after"))
