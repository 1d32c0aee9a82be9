"""What happens to a cluster and its clients: what each kind of fault in a plan does."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tests.simulation.clients import Client
from tests.simulation.kernel import Task
from tests.simulation.machine import End
from tests.simulation.node import Node
from tests.simulation.plan import Fault
from tests.simulation.processes import Process
from tests.simulation.programs import Program

WRITES: Final = 4
"""Those of its next writes after one of which a worker is killed in a step."""


class Cluster:
    """Those to whom something happens, by their names."""

    def __init__(self, nodes: list[Node], clients: Sequence[Client | Program]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.clients = {client.name: client for client in clients}

    def happen(self, fault: Fault) -> None:
        """Do it, if there is still whom to do it to."""
        HAPPENS[fault.kind](self, fault)

    def node(self, fault: Fault) -> Node | None:
        """Return the one that it happens to."""
        return self.nodes.get(fault.whom)

    def worker(self, fault: Fault) -> Process | None:
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
        worker.signal(signal.SIGKILL)


def _kill_in_a_step(cluster: Cluster, fault: Fault) -> None:
    if (worker := cluster.worker(fault)) is not None:
        worker.task.kill_after(1 + fault.nth % WRITES)


def _kill_at_a_point(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None:

        def kill(task: Task) -> None:
            task.kernel.note(task.name, f"is killed where {fault.point}")
            task.kill_here()

        node.kernel.traps[node.host, fault.point] = kill


def _stop_at_a_point(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None:

        def stop(task: Task) -> None:
            task.kernel.note(task.name, f"is stopped for {fault.seconds:.3f} s where {fault.point}")
            node.suffer("stop", task.kernel.time() + fault.seconds)
            task.hold_up(fault.seconds)

        node.kernel.traps[node.host, fault.point] = stop


def _stop(cluster: Cluster, fault: Fault) -> None:
    node, worker = cluster.node(fault), cluster.worker(fault)
    if node is not None and worker is not None:
        node.stop(worker, fault.seconds)


def _reload(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None:
        node.reload()


def _suspend(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None:
        node.suffer("suspend", node.kernel.now + fault.seconds)
        node.kernel.suspend(node.host, fault.seconds)


def _part(cluster: Cluster, fault: Fault) -> None:
    node, other = cluster.node(fault), cluster.other(fault)
    if node is not None and other is not None:
        node.part(other, fault.seconds)


def _part_one_way(cluster: Cluster, fault: Fault) -> None:
    node, other = cluster.node(fault), cluster.other(fault)
    if node is not None and other is not None:
        node.part(other, fault.seconds, "one way")


def _link(cluster: Cluster, fault: Fault) -> End | None:
    """Return one end of a connection between two nodes."""
    node, other = cluster.node(fault), cluster.other(fault)
    ends = node.net.between(node.host, other.host) if node is not None and other is not None else []
    return ends[fault.nth % len(ends)] if ends else None


def _link_reset(cluster: Cluster, fault: Fault) -> None:
    node, end = cluster.node(fault), _link(cluster, fault)
    if node is not None and end is not None:
        node.suffer("link reset", node.kernel.now)
        node.kernel.note(node.name, "has a connection to another node reset")
        end.reset_both()


def _link_half_open(cluster: Cluster, fault: Fault) -> None:
    node, end = cluster.node(fault), _link(cluster, fault)
    if node is not None and end is not None:
        node.suffer("link half open", node.kernel.now + fault.seconds)
        node.kernel.note(node.name, f"has a connection to another node half open for {fault.seconds:.3f} s, then reset")
        end.lose()
        node.kernel.at(node.kernel.now + fault.seconds, end.reset_both)


def _no_descriptors(cluster: Cluster, fault: Fault) -> None:
    node, worker = cluster.node(fault), cluster.worker(fault)
    if node is not None and worker is not None:
        node.suffer("no descriptors", node.kernel.now + fault.seconds)
        worker.task.starve(fault.seconds)


def _slow_client(cluster: Cluster, fault: Fault) -> None:
    if (client := cluster.clients.get(fault.whom)) is not None:
        client.stop(fault.seconds)


def _cut(cluster: Cluster, fault: Fault) -> None:
    if (client := cluster.clients.get(fault.whom)) is not None:
        client.cut("is cut off")


def _client_reset(cluster: Cluster, fault: Fault) -> None:
    if (client := cluster.clients.get(fault.whom)) is not None:
        client.cut("has its connection reset", End.reset_both)


def _client_half_open(cluster: Cluster, fault: Fault) -> None:
    if (client := cluster.clients.get(fault.whom)) is not None:
        client.cut("is gone without a word", End.lose)


HAPPENS: Final[Mapping[str, Callable[[Cluster, Fault], None]]] = {
    "kill": _kill,
    "kill in a step": _kill_in_a_step,
    "kill at a point": _kill_at_a_point,
    "stop at a point": _stop_at_a_point,
    "reload": _reload,
    "stop": _stop,
    "suspend": _suspend,
    "part": _part,
    "part one way": _part_one_way,
    "link reset": _link_reset,
    "link half open": _link_half_open,
    "no descriptors": _no_descriptors,
    "slow client": _slow_client,
    "cut": _cut,
    "client reset": _client_reset,
    "client half open": _client_half_open,
}
