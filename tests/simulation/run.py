"""One run: a cluster, its clients, what happens to it, and the judgement."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.promises.history import TRUE, History
from tests.promises.rules import broken, unknown
from tests.simulation.clients import Caller, Client, PubSub
from tests.simulation.faults import Cluster
from tests.simulation.kernel import Kernel, Listener
from tests.simulation.machine import Net
from tests.simulation.membership import Founder
from tests.simulation.plan import NODE, SPEAK_S, ClientPlan, Fault, Plan
from tests.simulation.plan import plan as planned
from tests.simulation.programs import Broker, Junction, Program
from workers.engine import points
from workers.setup.ground import JUNCTION, PUBSUB

BOOT_S: Final = 0.1
MEET_S: Final = 1.5
"""Seconds for nodes to start, and then to find each other."""

LAST_ANSWERS_S: Final = 8.0
"""Seconds in which the last calls are answered."""

CLIENTS: Final[Mapping[str, tuple[type[Client | Program], str, str]]] = {
    "caller": (Caller, JUNCTION, "10.1.0"),
    "pair": (Caller, JUNCTION, "10.1.2"),
    "program": (Junction, JUNCTION, "10.1.1"),
    "pubsub": (PubSub, PUBSUB, "10.2.0"),
    "broker": (Broker, PUBSUB, "10.2.1"),
}
"""Kinds of clients: what they are, which door they use, and where they are."""


@dataclass
class Result:
    """What came of it."""

    calls: int
    met: int
    published: int
    trace: int
    """A hash of all that happened."""
    seconds: float
    """That went by."""
    kills: int
    under_way: int
    """Calls that waited for their answer when something happened, of all that happened."""
    unknown: int
    """Senders that were told that it is not known whether somebody came."""
    moves: int
    """Connections that one worker passed to another."""
    broken: list[str]
    points: dict[str, int]
    """How often each point of the program was reached."""


def _cluster(net: Net, plan: Plan) -> Cluster:
    """Return its nodes, which have found each other."""
    founder = Founder(net, plan)
    nodes = [founder.node(f"{NODE}{number}") for number in range(plan.nodes)]
    net.kernel.go_on(BOOT_S)
    if len(nodes) > 1:
        net.kernel.go_on(MEET_S)
    return Cluster(founder, nodes)


def _client(net: Net, plan: ClientPlan, founder: Founder, topics: list[str]) -> Client | Program:
    made, door, network = CLIENTS[plan.kind]
    return made(net, plan, f"{network}.{plan.number}", founder.doors[door], topics)


def run(what: Plan | int, listener: Listener | None = None) -> Result:
    """Run a plan, or that of a seed."""
    plan = planned(what) if isinstance(what, int) else what
    kernel = Kernel(plan.seed, listener, plan.conditions.crowded)
    began = kernel.now
    net = Net(kernel, plan.conditions)
    cluster = _cluster(net, plan)
    cluster.watch_rings()
    cluster.founder.strays = plan.conditions.strays
    topics = [f"topic{n}" for n in range(plan.topics)]
    clients = [_client(net, each, cluster.founder, topics) for each in plan.clients]
    cluster.clients = {client.name: client for client in clients}
    pubsubs = [client for client in clients if isinstance(client, PubSub)]
    for number, client in enumerate(pubsubs):
        client.mate = pubsubs[number - 1]
    under_way = 0

    def happen(fault: Fault) -> None:
        nonlocal under_way
        under_way += sum(client.under_way() for client in clients)
        cluster.happen(fault)

    for fault in plan.faults:
        kernel.at(kernel.now + fault.at, functools.partial(happen, fault))
    points.listener = kernel.reached
    kernel.go_on(SPEAK_S)
    for client in clients:
        client.is_done = True
    kernel.traps.clear()
    kernel.go_on(LAST_ANSWERS_S)
    points.listener = None
    nodes = [*cluster.nodes.values()]
    besides = [] if cluster.agree() else [f"nodes_find_each_other: {[(each.name, each.rings) for each in nodes]}"]
    besides += cluster.founder.unfound(nodes)
    besides += [line for client in clients if isinstance(client, Client) for line in client.half_alive()]
    for node in nodes:
        node.close()
    for client in clients:
        if isinstance(client, Program):
            client.close()
        client.look_back()
    connections = [each for client in clients for each in client.connections]
    troubles = [each for node in nodes for each in node.troubles]
    streams = [each for client in clients if isinstance(client, Program) for each in client.streams]
    history = History(connections, len(nodes), troubles, streams)
    calls = [*history.calls()]
    return Result(
        len(calls),
        sum(call.answer == TRUE for call in calls),
        sum(len(each.published) for each in connections),
        kernel.trace,
        kernel.now - began,
        sum(each.kind == "kill" for each in troubles),
        under_way,
        unknown(history),
        kernel.points.get("a connection is handed over", 0),
        [*broken(history), *besides],
        kernel.points,
    )
