"""One run: a real cluster, a crowd that uses it, one kind of fault, and the judgement."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from skywalker.cli.demo_cluster.ports import free_ports
from tests.chaos.clock import Clock
from tests.chaos.crowd import Crowd
from tests.chaos.faults import WORKERS, Faults
from tests.chaos.net import Door
from tests.chaos.stalls import Starvation
from tests.cluster.clusters import Cluster, ClusterNode, Static
from tests.cluster.network import Loopback, Machine, Network
from tests.promises.history import TRUE, History
from tests.promises.rules import broken
from tests.simulation.plan import SPEAK_S, plan
from tests.workers.wire_client import Address

NODES: Final = {"kill": 1, "stop": 1, "reload": 2, "leave": 3, "death": 3, "part": 3, "half open": 2}
"""That it takes for each kind of fault to show what it does."""

NETWORKED: Final = ("part", "half open")

ROUND_S: Final = 3.0
"""Seconds of a round: what a plan of the simulation has in ten."""

HAPPENS: Final = 3
CUTS: Final = 10
"""How often in a round that happens, and a client loses its connection."""

LAST_ANSWERS_S: Final = 8.0

FAR: Final = 4
"""Each so manieth client is on a machine of its own."""


class PubSubStatic(Static):
    """Nodes that know of each other by a list, and have a port for pub/sub in all their lives."""

    def __init__(self, nodes: Iterable[ClusterNode]) -> None:
        nodes = [*nodes]
        super().__init__(nodes)
        self._ports = dict(zip((node.name for node in nodes), free_ports(len(nodes)), strict=True))

    def settings(self, node: ClusterNode) -> Mapping[str, object]:
        return {**super().settings(node), "pubsub_port": self._ports[node.name]}

    def address(self, node: ClusterNode) -> Address:
        """Return where a node speaks pub/sub."""
        return node.machine.address, self._ports[node.name]


@dataclasses.dataclass
class Result:
    """What came of it."""

    calls: int
    met: int
    published: int
    troubles: int
    broken: list[str]
    logs: str


def run(kind: str, seconds: float, seed: int) -> Result:
    """Have clients use a cluster for so long, while that kind of fault happens."""
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(Network(NODES[kind] + 1)) if kind in NETWORKED else None
        machines: list[Machine] = [*network.hosts] if network else [Loopback()] * (NODES[kind] + 1)
        made = Cluster(NODES[kind], machines=machines[:-1], workers=WORKERS, drain_timeout_s=1.0)
        cluster = stack.enter_context(made)
        cluster.discovery = pubsub = PubSubStatic(cluster.nodes)
        cluster.start()
        clock = Clock(seed)
        stack.callback(clock.close)

        def doors(number: int, kind: str) -> Mapping[Door, str]:
            found = {}
            for node in cluster.nodes:
                address = pubsub.address(node) if kind == "pubsub" else (node.machine.address, node.port)
                found[door(address, node.machine if number % FAR else machines[-1])] = node.name
            return found

        rounds = [plan(random.Random(f"{seed} {n}").getrandbits(32)) for n in range(round(seconds / ROUND_S) or 1)]
        crowd = Crowd(clock, rounds, ROUND_S, doors)
        stack.callback(crowd.close)
        faults = Faults(clock, cluster, network, crowd.clients[::FAR])
        stack.callback(faults.join)
        for number, each in enumerate(rounds):
            times = [clock.now + ROUND_S * (number + fault.at / SPEAK_S) for fault in each.faults]
            for at in clock.luck.sample(times, HAPPENS):
                clock.at(at, lambda: faults.happen(kind))
            for at in clock.luck.sample(times, CUTS):
                clock.at(at, lambda: clock.luck.choice(crowd.clients).cut("is cut off"))
        Starvation(clock, lambda: (pid for node in cluster.live for pid in node.worker_pids())).look()
        clock.go_on(ROUND_S * len(rounds))
        connections = crowd.finish(LAST_ANSWERS_S, lambda: faults.is_over)
        faults.name_slots()
        history = History(connections, len(cluster.nodes), faults.troubles, stalls=clock.stalls)
        calls = [*history.calls()]
        return Result(
            len(calls),
            sum(call.answer == TRUE for call in calls),
            sum(len(each.published) for each in connections),
            len(faults.troubles),
            broken(history),
            "".join(node.log for node in cluster.nodes),
        )


def door(address: Address, machine: Machine) -> Door:
    """Return how a client on some machine connects to an address."""

    def dial() -> socket.socket:
        with machine.inside():
            sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(address)  # nobody else waits until somebody answers there
        return sock

    return dial
