"""What the nodes of a cluster say of each other while some are reloaded, and what while a worker of one dies."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence

from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.meeting import meet
from tests.helpers import eventually
from tests.workers.wire_client import WireClient

ROUNDS = 3
TOPICS = 24


def warnings(cluster: Cluster) -> list[str]:
    """Return what was logged that went wrong."""
    lines = [line for node in cluster.nodes for line in node.log.splitlines()]
    return [line for line in lines if "level=warning" in line or "level=error" in line]


def reload(nodes: Sequence[ClusterNode]) -> None:
    """Reload these at once, and wait until that is done."""
    before = [node.log.count("event=reloaded") for node in nodes]
    for node in nodes:
        os.kill(node.pid, signal.SIGHUP)
    for node, count in zip(nodes, before, strict=True):
        eventually(lambda node=node, count=count: node.log.count("event=reloaded") > count, 20.0)


def meet_everywhere(nodes: Sequence[ClusterNode], about: str) -> None:
    """Have clients of all nodes meet on topics of all, so that each worker asks each."""
    for sender, receiver in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        with contextlib.ExitStack() as closing:
            clients: list[list[WireClient]] = []
            for node in (sender, receiver):
                clients.append([closing.enter_context(node.client()) for _ in range(4)])
            for number, (one, other) in enumerate(zip(*clients, strict=True)):
                meet(one, other, [f"{about}-{sender.name}-{number}-{topic}" for topic in range(TOPICS)], 15.0)


def test_planned_reloads_are_nothing_that_went_wrong() -> None:
    with Cluster(3) as cluster:
        cluster.start()
        before = warnings(cluster)  # of those that others were started later than
        for number in range(ROUNDS):
            meet_everywhere(cluster.nodes, f"{number}")
            reload([cluster.nodes[number % 3]])
            meet_everywhere(cluster.nodes, f"{number} and after one")
            reload(cluster.nodes)
        meet_everywhere(cluster.nodes, "in the end")
        assert warnings(cluster) == before


def test_a_worker_that_dies_is_warned_of() -> None:
    with Cluster(2) as cluster:
        cluster.start()
        meet_everywhere(cluster.nodes, "before")
        os.kill(cluster.nodes[0].worker_pids()[0], signal.SIGKILL)
        eventually(lambda: "level=warning event=peer-lost" in cluster.nodes[1].log)
