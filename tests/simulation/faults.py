"""What happens to a cluster and its clients: what each kind of fault in a plan does."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Final

from skywalker.members import Snapshot
from tests.simulation.clients import Client
from tests.simulation.kernel import NEVER
from tests.simulation.membership import TROUBLES, Founder
from tests.simulation.node import Node
from tests.simulation.plan import Fault
from tests.simulation.processes import Process

AGREE_S: Final = 0.05
"""Seconds between two looks whether nodes agree."""

WRITES: Final = 4
"""Those of its next writes after one of which a worker is killed in a step."""


class Cluster:
    """Those to whom something happens, by their names."""

    def __init__(self, founder: Founder, nodes: list[Node]) -> None:
        self.founder = founder
        self.nodes = {node.name: node for node in nodes}
        self.clients: dict[str, Client] = {}

    def happen(self, fault: Fault) -> None:
        """Do it, if there is still whom to do it to."""
        HAPPENS[fault.kind](self, fault)

    def watch(self, node: Node, kind: str) -> None:
        """Have a node be troubled in that way until all of them agree again on who is one."""
        trouble = node.suffer(kind, NEVER)

        def look() -> None:
            if self.agree():
                trouble.until = node.kernel.now
            else:
                node.kernel.at(node.kernel.now + AGREE_S, look)

        look()

    def agree(self) -> bool:
        """Return whether all nodes live, and know that."""
        nodes = [*self.nodes.values()]
        ring = Snapshot([node.member for node in nodes]).version
        return all(node.lives and node.ring in (ring, "") for node in nodes)

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


def _stop(cluster: Cluster, fault: Fault) -> None:
    node, worker = cluster.node(fault), cluster.worker(fault)
    if node is not None and worker is not None:
        node.stop(worker, fault.seconds)


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


def _join(cluster: Cluster, fault: Fault) -> None:
    if fault.whom not in cluster.nodes:
        cluster.nodes[fault.whom] = cluster.founder.node(fault.whom)
        cluster.watch(cluster.nodes[fault.whom], "join")


def _leave(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None and node.lives:
        node.leave(fault.seconds)
        cluster.watch(node, "leave")


def _die(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None and node.lives:
        node.die(fault.seconds, loses_power=fault.nth % 2 == 1)
        cluster.watch(node, "death")


def _kill_agent(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None and node.agent is not None:
        node.agent.signal(signal.SIGKILL)


def _stop_agent(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None and node.agent is not None:
        node.stop(node.agent, fault.seconds, fault.kind)


def _stop_supervisor(cluster: Cluster, fault: Fault) -> None:
    if (node := cluster.node(fault)) is not None and node.lives:
        node.stop(node.process, fault.seconds, fault.kind)


def _mislead(cluster: Cluster, fault: Fault) -> None:
    cluster.founder.directory.have(TROUBLES[fault.nth % len(TROUBLES)], 2 * fault.seconds)


HAPPENS: Final[Mapping[str, Callable[[Cluster, Fault], None]]] = {
    "kill": _kill,
    "kill in a step": _kill_in_a_step,
    "reload": _reload,
    "stop": _stop,
    "part": _part,
    "slow client": _slow_client,
    "cut": _cut,
    "join": _join,
    "leave": _leave,
    "death": _die,
    "agent kill": _kill_agent,
    "agent stop": _stop_agent,
    "supervisor stop": _stop_supervisor,
    "wrong directory": _mislead,
}
