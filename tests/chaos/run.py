"""One run: a real cluster, the simulation's clients on real connections, one kind of fault, and the judgement."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import socket
from collections.abc import Sequence
from typing import Any, Final

from tests.chaos.clock import Clock
from tests.chaos.faults import WORKERS, Faults
from tests.chaos.net import DIALS_S, Door, Net
from tests.chaos.stalls import Starvation
from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.network import Loopback, Machine, Network
from tests.promises.history import TRUE, History
from tests.promises.rules import broken
from tests.simulation.clients import Caller, Client, PubSub
from tests.simulation.plan import SPEAK_S, ClientPlan, Plan, Spurt, plan
from tests.workers.pubsub_bus import PubSubStatic
from tests.workers.wire_client import Address

NODES: Final = {"kill": 1, "stop": 1, "reload": 2, "leave": 3, "death": 3, "part": 3, "half-open": 2}
"""That it takes for each kind of fault to show what it does."""

NETWORKED: Final = ("part", "half-open")

ROUND_S: Final = 3.0
"""Seconds of a round: what a plan of the simulation has in ten, of which half of the clients are there."""

HAPPENS: Final = 3
CUTS: Final = 10
"""How often in a round that happens, and a client loses its connection."""

LONGEST_MS: Final = 1000
"""Of the timeouts of calls: at the end of a run all are waited for."""

LAST_ANSWERS_S: Final = 8.0

FAR: Final = 4
"""Each so manieth client is on a machine of its own."""


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
        cluster = stack.enter_context(
            Cluster(NODES[kind], machines=machines[:-1], workers=WORKERS, drain_timeout_s=1.0)
        )
        cluster.discovery = pubsub = PubSubStatic(cluster.nodes)
        cluster.start()
        clock = Clock(seed)
        rounds = [plan(random.Random(f"{seed} {n}").getrandbits(32)) for n in range(round(seconds / ROUND_S) or 1)]
        clients = _clients(clock, cluster, pubsub, machines[-1], rounds)
        stack.callback(clock.close)
        for client in clients:
            stack.callback(client.cut)
        far = [client for number, client in enumerate(clients) if not number % FAR]
        faults = Faults(clock, cluster, network, far)
        for number, each in enumerate(rounds):
            times = [clock.now + ROUND_S * (number + fault.at / SPEAK_S) for fault in each.faults]
            for at in clock.luck.sample(times, HAPPENS):
                clock.at(at, lambda: faults.happen(kind))
            for at in clock.luck.sample(times, CUTS):
                clock.at(at, lambda: clock.luck.choice(clients).cut())
        Starvation(clock, lambda: (pid for node in cluster.live for pid in node.worker_pids())).look()
        clock.go_on(ROUND_S * len(rounds))
        for client in clients:
            client.is_done = True
        clock.go_on(LAST_ANSWERS_S, lambda: faults.is_over and not any(client.under_way() for client in clients))
        faults.name_slots()
        connections = [each for client in clients for each in client.connections]
        for client in clients:
            client.look_back()
        for connection in connections:
            connection.is_whole = False
        history = History(connections, len(cluster.nodes), faults.troubles, clock.stalls)
        calls = [*history.calls()]
        return Result(
            len(calls),
            sum(call.answer == TRUE for call in calls),
            sum(len(each.published) for each in connections),
            len(faults.troubles),
            broken(history),
            "".join(node.log for node in cluster.nodes),
        )


def _clients(clock: Clock, cluster: Cluster, pubsub: PubSubStatic, far: Machine, rounds: list[Plan]) -> list[Client]:
    """Return half of those that the plans have; some of them are far away."""
    doors: dict[Door, str] = {}

    def door(node: ClusterNode, address: Address, machine: Machine) -> Door:
        def dial() -> socket.socket:
            with machine.inside():
                return socket.create_connection(address, DIALS_S)

        doors[dial] = node.name
        return dial

    net: Any = Net(clock, doors)
    topics = [f"topic{number}" for number in range(max(each.topics for each in rounds))]
    clients: list[Client] = []
    for number, plans in enumerate(zip(*(each.clients[::2] for each in rounds), strict=True)):
        found: list[Any] = []
        for node in cluster.nodes:
            where = (node.machine.address, node.port) if plans[0].kind == "caller" else pubsub.address(node)
            found.append(door(node, where, node.machine if number % FAR else far))
        made = Caller if plans[0].kind == "caller" else PubSub
        clients.append(made(net, _joined(plans), "", found, topics))
    return clients


def _joined(plans: Sequence[ClientPlan]) -> ClientPlan:
    """Return one client that says what it would have said in each round."""
    spurts = [
        Spurt(
            ROUND_S * (number + spurt.at / SPEAK_S),
            tuple(word._replace(timeout_ms=min(word.timeout_ms, LONGEST_MS)) for word in spurt.words),
        )
        for number, plan in enumerate(plans)
        for spurt in plan.spurts
    ]
    return dataclasses.replace(plans[0], spurts=tuple(spurts))
