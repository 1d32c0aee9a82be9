"""What the nodes of a cluster say of each other while some are reloaded, and what while a worker of one dies."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from tests.cluster.meeting import meet
from tests.helpers import eventually
from tests.workers.staged import Node, simulated_nodes
from tests.workers.wire_client import WireClient

ROUNDS = 3
TOPICS = 24


def warnings(nodes: Sequence[Node]) -> list[str]:
    """Return what was logged that went wrong."""
    lines = [line for node in nodes for line in node.log.splitlines()]
    return [line for line in lines if "level=warning" in line or "level=error" in line]


def reload(nodes: Sequence[Node]) -> None:
    """Reload these at once, and wait until that is done."""
    for node in nodes:
        node.begin_reload()
    eventually(lambda: not any(node.reloads for node in nodes), 20.0)


def meet_everywhere(nodes: Sequence[Node], about: str) -> None:
    """Have clients of all nodes meet on topics of all, so that each worker asks each."""
    for sender, receiver in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        with contextlib.ExitStack() as closing:
            clients: list[list[WireClient]] = []
            for node in (sender, receiver):
                clients.append([closing.enter_context(WireClient.open(node.address)) for _ in range(4)])
            for number, (one, other) in enumerate(zip(*clients, strict=True)):
                about_these = f"{about}-{nodes.index(sender)}-{number}"  # ids are short
                meet(one, other, [f"{about_these}-{topic}" for topic in range(TOPICS)], 15.0)


def test_planned_reloads_are_nothing_that_went_wrong() -> None:
    with simulated_nodes(3, drain_timeout_s=5.0) as nodes:
        before = warnings(nodes)  # of those that others were started later than
        for number in range(ROUNDS):
            meet_everywhere(nodes, f"{number}")
            reload([nodes[number % 3]])
            meet_everywhere(nodes, f"{number} and after one")
            reload(nodes)
        meet_everywhere(nodes, "in the end")
        assert warnings(nodes) == before


def test_a_worker_that_dies_is_warned_of() -> None:
    with simulated_nodes(2) as nodes:
        meet_everywhere(nodes, "before")
        nodes[0].kill(nodes[0].pids()[0])
        eventually(lambda: "level=warning event=peer-lost" in nodes[1].log)
