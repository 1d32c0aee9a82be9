"""What happens to a cluster and its clients: what each kind of fault in a plan does."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Final

from tests.simulation.clients import Client
from tests.simulation.node import Node, WorkerProcess
from tests.simulation.plan import Fault

WRITES: Final = 4
"""Those of its next writes after one of which a worker is killed in a step."""


class Cluster:
    """Those to whom something happens, by their names."""

    def __init__(self, nodes: list[Node], clients: list[Client]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.clients = {client.name: client for client in clients}

    def happen(self, fault: Fault) -> None:
        """Do it, if there is still whom to do it to."""
        HAPPENS[fault.kind](self, fault)

    def node(self, fault: Fault) -> Node | None:
        """Return the one that it happens to."""
        return self.nodes.get(fault.whom)

    def worker(self, fault: Fault) -> WorkerProcess | None:
        """Return the one that it happens to."""
        node = self.node(fault)
        workers = node.workers() if node is not None else []
        return workers[fault.nth % len(workers)] if workers else None

    def other(self, fault: Fault) -> Node | None:
        """Return another node than that which it happens to."""
        others = [node for node in self.nodes.values() if node is not self.node(fault)]
        return others[fault.nth % len(others)] if others else None


def _kill(cluster: Cluster, fault: Fault) -> None:
    if (worker := cluster.worker(fault)) is not None:
        worker.end(-signal.SIGKILL)


def _kill_in_a_step(cluster: Cluster, fault: Fault) -> None:
    if (worker := cluster.worker(fault)) is not None:
        worker.task.kill_after(1 + fault.nth % WRITES)


def _stop(cluster: Cluster, fault: Fault) -> None:
    if (worker := cluster.worker(fault)) is not None:
        worker.node.stop(worker, fault.seconds)


def _reload(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None:
        node.reload()


def _part(cluster: Cluster, fault: Fault) -> None:
    node, other = cluster.node(fault), cluster.other(fault)
    if node is not None and other is not None:
        node.part(other, fault.seconds)


def _slow_client(cluster: Cluster, fault: Fault) -> None:
    if (client := cluster.clients.get(fault.whom)) is not None:
        client.stop(fault.seconds)


def _cut(cluster: Cluster, fault: Fault) -> None:
    if (client := cluster.clients.get(fault.whom)) is not None:
        client.cut()


HAPPENS: Final[Mapping[str, Callable[[Cluster, Fault], None]]] = {
    "kill": _kill,
    "kill in a step": _kill_in_a_step,
    "reload": _reload,
    "stop": _stop,
    "part": _part,
    "slow client": _slow_client,
    "cut": _cut,
}
