"""What happens to real nodes, by those means that only a kernel has, and how long that is trouble."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Final

from tests.chaos.clock import Clock
from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.network import Host, Network
from tests.promises.history import NEVER_S, Trouble
from tests.simulation.clients import Client
from tests.workers.processes import is_gone

WORKERS: Final = 2
LOOK_S: Final = 0.05

STOPS_S: Final = (0.02, 0.2, 2.0)
PARTS_S: Final = (0.5, 2.0)
"""Seconds for which a worker stands still, or nothing passes between nodes, at most."""

RETRY_S: Final = 0.5
"""Seconds by which the kernel's pause before it sends once more may be longer than what it has tried for."""

DOWN_S: Final = 0.5
"""Seconds from the end of a node to its next life."""


class Faults:
    """Strikes nodes and their clients, and notes when that was trouble."""

    def __init__(self, clock: Clock, cluster: Cluster, network: Network | None, far_clients: Sequence[Client]) -> None:
        """The clients are those on the network's last machine, which no node is on."""
        self.troubles: list[Trouble] = []
        self._clock = clock
        self._luck = clock.luck
        self._cluster = cluster
        self._network = network
        self._far_clients = far_clients
        self._killed: dict[int, Trouble] = {}
        self._revivals: list[threading.Thread] = []

    def happen(self, kind: str) -> None:
        """Do one of KINDS, to whom luck chooses."""
        KINDS[kind](self)

    @property
    def is_over(self) -> bool:
        """Whether nothing troubles anybody any more, nor is felt of what did."""
        return all(each.until <= self._clock.now for each in self.troubles)

    def name_slots(self) -> None:
        """Find out, from what the nodes have logged, in which slots those workers were that were killed."""
        for node in self._cluster.nodes:
            for line in node.log.splitlines():
                fields = dict(re.findall(r"\b(worker|pid)=(\d+)", line))
                if "event=worker-ended" in line and (trouble := self._killed.get(int(fields["pid"]))) is not None:
                    trouble.worker = int(fields["worker"])

    def _node(self) -> ClusterNode | None:
        """Return one that lives, if all do: nothing is done to a cluster that has yet to get over something."""
        nodes = self._cluster.live
        return self._luck.choice(nodes) if len(nodes) == len(self._cluster.nodes) and self.is_over else None

    def _suffer(self, kind: str, node: ClusterNode) -> Trouble:
        trouble = Trouble(kind, node.name, self._clock.now, NEVER_S)
        self.troubles.append(trouble)
        self._clock.note(node.name, kind)
        return trouble

    def _until(self, trouble: Trouble, *steps: Callable[[], bool]) -> None:
        """Have a trouble end as soon as each of these was true, one after the other."""
        left = [*steps]

        def look() -> None:
            while left and left[0]():
                del left[0]
            if left:
                self._clock.at(self._clock.now + LOOK_S, look)
            else:
                trouble.until = self._clock.now
                self._clock.note(trouble.node, f"{trouble.kind} is over")

        look()

    def _after(self, seconds: float, trouble: Trouble, undo: Callable[[], None], felt_s: float = 0.0) -> None:
        """Undo something then; it is felt for some time after that.

        It is undone by a thread: that of the clock may be dialling who cannot be reached until then.
        """
        timer = threading.Timer(seconds, undo)
        timer.start()

        def end() -> None:
            timer.join()
            trouble.until = self._clock.now + felt_s
            self._clock.note(trouble.node, f"{trouble.kind} is over")

        self._clock.at(self._clock.now + seconds, end)

    def kill(self) -> None:
        """Kill a worker."""
        if (node := self._node()) is not None:
            victim = self._luck.choice(node.worker_pids())
            trouble = self._killed[victim] = self._suffer("kill", node)
            os.kill(victim, signal.SIGKILL)
            self._until(trouble, lambda: is_gone(victim) and len(node.worker_pids()) == WORKERS)

    def stop(self) -> None:
        """Have a worker stand still for a while."""
        if (node := self._node()) is not None:
            victim = self._luck.choice(node.worker_pids())
            trouble = self._suffer("stop", node)
            os.kill(victim, signal.SIGSTOP)
            seconds = self._luck.random() * self._luck.choice(STOPS_S)
            self._after(seconds, trouble, lambda: os.kill(victim, signal.SIGCONT))

    def reload(self) -> None:
        """Have a node replace its workers."""
        if (node := self._node()) is not None:
            before = node.log.count("event=reloaded")
            trouble = self._suffer("reload", node)
            os.kill(node.pid, signal.SIGHUP)
            self._until(trouble, lambda: node.log.count("event=reloaded") > before)

    def leave(self) -> None:
        """Have a node drain and end, and come back."""
        if (node := self._node()) is not None:
            trouble = self._suffer("leave", node)
            node.drain()
            self._until(trouble, lambda: not node.lives, *self._revival(node))

    def die(self) -> None:
        """End a node at once, and have it come back."""
        if (node := self._node()) is not None:
            trouble = self._suffer("death", node)
            os.killpg(node.pid, signal.SIGKILL)
            due = self._clock.now + DOWN_S
            self._until(trouble, lambda: not node.lives and self._clock.now > due, *self._revival(node))

    def _revival(self, node: ClusterNode) -> list[Callable[[], bool]]:
        """Return the steps until a node that has ended is back: all in a thread, since clients do not wait for that."""
        is_back = threading.Event()

        def revive() -> None:
            node.end()
            self._cluster.revive(node)
            self._cluster.settle()
            is_back.set()

        def begin() -> bool:
            self._revivals.append(threading.Thread(target=revive))
            self._revivals[-1].start()
            return True

        return [begin, is_back.is_set]

    def join(self) -> None:
        """Wait until no node is being revived any more."""
        for revival in self._revivals:
            revival.join()

    def part(self) -> None:
        """Have nothing pass between one node and the others for a while."""
        node = self._node()
        if node is not None and isinstance(node.machine, Host) and self._network is not None:
            trouble = self._suffer("part", node)
            self._network.isolate(node.machine)
            seconds = self._luck.random() * self._luck.choice(PARTS_S)
            self._after(seconds, trouble, self._network.heal, seconds + RETRY_S)

    def vanish(self) -> None:
        """Have the machine of some clients be gone for a while, and its clients for good: no node hears of that."""
        if (node := self._node()) is not None and self._network is not None and self._far_clients:
            trouble = self._suffer("half open", node)
            self._network.isolate(self._network.hosts[-1])
            seconds = self._luck.random() * self._luck.choice(PARTS_S)
            for client in self._far_clients:
                if client.connections:
                    client.connection.taken_until = self._clock.now + 2 * seconds + RETRY_S
                client.cut("is gone without a word")
                client.stop(seconds + RETRY_S)
            self._after(seconds, trouble, self._network.heal, seconds + RETRY_S)


KINDS: Final[dict[str, Callable[[Faults], None]]] = {
    "kill": Faults.kill,
    "stop": Faults.stop,
    "reload": Faults.reload,
    "leave": Faults.leave,
    "death": Faults.die,
    "part": Faults.part,
    "half open": Faults.vanish,
}
