"""One run: a cluster, its clients, what happens to it, and the judgement."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from skywalker.config import Config
from skywalker.members import Snapshot
from tests.promises.history import TRUE, History
from tests.promises.rules import broken, in_doubt, unknown
from tests.simulation.clients import Caller, Client, PubSub, Spurt
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.node import Node
from workers.setup.ground import JUNCTION, PUBSUB

WORKERS: Final = 2
CALLERS: Final = 34
PUBSUBS: Final = 6
CALLS: Final = 3000
PUBLISHED: Final = 600
FAULTS: Final = 10
CUTS: Final = 20
"""Clients that lose their connection."""

KINDS: Final = ("kill", "kill in a step", "reload", "stop", "slow client", "part")
"""What a fault may be. A run has some of them: two kinds at once would excuse much of what one must not do."""

STOPS_S: Final = (0.02, 0.2, 2.0)
"""Seconds for which a process is stopped or two nodes are parted, at most."""

BOOT_S: Final = 0.1
MEET_S: Final = 1.5
"""Seconds for nodes to start, and then to find each other."""

SPEAK_S: Final = 10.0
LAST_ANSWERS_S: Final = 8.0
"""Seconds in which clients speak, and in which the last of them are answered."""


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
    in_doubt: int
    """Senders that were told that nobody came though somebody had their value, in a kill."""
    broken: list[str]


def _spurts(luck: Random, count: int, faults: list[float], now: float) -> list[Spurt]:
    """Return when a client says how much: most of the times at a fault."""
    parts = luck.randint(1, 8)
    found = []
    for _ in range(parts):
        at = now + luck.random() * SPEAK_S
        if luck.random() < 0.7:
            at = max(now, luck.choice(faults) - luck.choice([0.0005, 0.005, 0.05]) * luck.random())
        found.append((at, count // parts))
    return found


def _cluster(net: Net) -> list[Node]:
    """Return one to three nodes that have found each other."""
    luck, kernel, config = net.kernel.luck, net.kernel, Config(drain_timeout_s=0.5)
    nodes = [Node(net, f"node{n}", f"10.0.0.{n + 1}", WORKERS, config) for n in range(luck.choice([1, 2, 3]))]
    kernel.go_on(BOOT_S)
    if len(nodes) > 1:
        ring = Snapshot([node.member for node in nodes])
        for node in nodes:
            node.follow(ring)
        kernel.go_on(MEET_S)
    return nodes


def _happen(luck: Random, kind: str, nodes: list[Node], clients: Sequence[Client]) -> None:
    """Do one of KINDS to one of them."""
    node = luck.choice(nodes)
    seconds = luck.random() * luck.choice(STOPS_S)
    workers = node.workers()
    if kind == "reload":
        node.reload()
    elif kind == "slow client":
        luck.choice(clients).stop(seconds)
    elif kind == "part":
        if len(nodes) > 1:
            node.part(luck.choice([each for each in nodes if each is not node]), seconds)
    elif workers:
        victim = luck.choice(workers)
        if kind == "stop":
            node.stop(victim, seconds)
        elif kind == "kill":
            victim.end(-signal.SIGKILL)
        else:
            victim.task.kill_after(luck.randint(1, 4))


def run(seed: int, tell: Callable[[str], None] | None = None) -> Result:
    """Run one seed; `tell` is given a line for all that happens."""
    kernel = Kernel(seed, tell)
    began = kernel.now
    luck, net = kernel.luck, Net(kernel)
    nodes = _cluster(net)
    topics = [f"topic{n}" for n in range(luck.choice([1, 4, 20]))]
    kinds = luck.sample(KINDS, luck.randint(1, min(3, len(KINDS))))
    faults = [kernel.now + 0.1 + luck.random() * SPEAK_S for _ in range(FAULTS)]
    junctions, pubsub_doors = ([node.address(door) for node in nodes] for door in (JUNCTION, PUBSUB))

    def spurts(count: int) -> list[Spurt]:
        return _spurts(luck, count, faults, kernel.now)

    callers = [
        Caller(net, f"caller{n}", f"10.1.0.{n}", junctions, topics, spurts(CALLS // CALLERS)) for n in range(CALLERS)
    ]
    pubsubs = [
        PubSub(net, f"pubsub{n}", f"10.2.0.{n}", pubsub_doors, topics, spurts(PUBLISHED // PUBSUBS))
        for n in range(PUBSUBS)
    ]
    clients = [*callers, *pubsubs]
    under_way = 0

    def trouble() -> None:
        nonlocal under_way
        under_way += sum(client.under_way() for client in callers)
        _happen(luck, luck.choice(kinds), nodes, clients)

    for at in faults:
        kernel.at(at, trouble)
    for _ in range(CUTS):
        kernel.at(kernel.now + luck.random() * SPEAK_S, lambda: luck.choice(clients).cut())
    kernel.go_on(SPEAK_S)
    for client in clients:
        client.is_done = True
    kernel.go_on(LAST_ANSWERS_S)
    for node in nodes:
        node.close()
    for client in clients:
        client.look_back()
    connections = [each for client in clients for each in client.connections]
    troubles = [each for node in nodes for each in node.troubles]
    history = History(connections, len(nodes), troubles)
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
        in_doubt(history),
        broken(history),
    )
