"""What happens to a cluster and its clients: what each kind of fault in a plan does."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Final

from tests.promises.excuses import AGREE_S, RELAY_STOPPED, TWO_RINGS
from tests.promises.history import Trouble
from tests.simulation.clients import Client
from tests.simulation.ends import End
from tests.simulation.kernel import NEVER, Task
from tests.simulation.membership import TROUBLES, Founder
from tests.simulation.node import Node, agree
from tests.simulation.plan import Fault
from tests.simulation.processes import Process
from tests.simulation.programs import Program
from tests.simulation.zeromq import Connection

WRITES: Final = 4
"""Those of its next writes after one of which a worker is killed in a step."""


class Cluster:
    """Those to whom something happens, by their names."""

    def __init__(self, founder: Founder, nodes: list[Node]) -> None:
        self.founder = founder
        self.nodes = {node.name: node for node in nodes}
        self.clients: dict[str, Client | Program] = {}

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

    def watch_rings(self) -> None:
        """From now on, have a node be troubled as long as they do not agree."""
        node = next(iter(self.nodes.values()))
        trouble: Trouble | None = None

        def look() -> None:
            nonlocal trouble
            now = node.kernel.now
            if not self.agree():
                trouble = trouble or node.suffer(TWO_RINGS, NEVER)
            elif trouble is not None:
                trouble.until, trouble = now, None
            node.kernel.at(now + AGREE_S, look)

        look()

    def agree(self) -> bool:
        """Return whether all nodes live, and all their workers know that."""
        return agree(self.nodes.values())

    def hold_up(self, task: Task, until: float) -> None:
        """Have the nodes be troubled to which others are linked through a worker that stands still until then."""
        reached = task.process.reached if isinstance(task.process, Process) else set()
        for name in sorted(self.nodes.keys() & reached):
            self.nodes[name].suffer(RELAY_STOPPED, until)

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
            cluster.hold_up(task, task.kernel.time() + fault.seconds)
            task.hold_up(fault.seconds)

        node.kernel.traps[node.host, fault.point] = stop


def _stop(cluster: Cluster, fault: Fault) -> None:
    node, worker = cluster.node(fault), cluster.worker(fault)
    if node is not None and worker is not None:
        cluster.hold_up(worker.task, node.kernel.now + fault.seconds)
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


def _link(cluster: Cluster, fault: Fault) -> End | Connection | None:
    """Return one end of a connection between two nodes, or one of Silk's."""
    node, other = cluster.node(fault), cluster.other(fault)
    if node is None or other is None:
        return None
    hosts = node.host, other.host
    ends: list[End | Connection] = [*node.net.between(*hosts), *cluster.founder.zeromq.between(*hosts)]
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
    cluster.founder.have(TROUBLES[fault.nth % len(TROUBLES)], 2 * fault.seconds)


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
    "join": _join,
    "leave": _leave,
    "death": _die,
    "agent kill": _kill_agent,
    "agent stop": _stop_agent,
    "supervisor stop": _stop_supervisor,
    "wrong directory": _mislead,
    "client reset": _client_reset,
    "client half open": _client_half_open,
}
