"""One run: a cluster, its clients, what happens to it, and the judgement."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skywalker.config import Config
from skywalker.members import Snapshot
from tests.simulation.clients import Caller, PubSub
from tests.simulation.history import TRUE
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.node import Node
from tests.simulation.rules import History, Span, broken, in_doubt
from workers.setup.ground import JUNCTION, PUBSUB

WORKERS: Final = 2
CALLERS: Final = 34
PUBSUBS: Final = 6
FAULTS: Final = 10
CUTS: Final = 20
"""Workers that are killed or stopped and nodes that are reloaded, and clients that lose their connection."""

STOPS_S: Final = (0.02, 0.2, 2.0)
"""Seconds for which a worker is stopped, at most."""

BOOT_S: Final = 0.1
MEET_S: Final = 1.5
"""Seconds for nodes to start, and then to find each other."""

SPEAK_S: Final = 14.0
LAST_ANSWERS_S: Final = 6.0
"""Seconds in which clients speak, and in which the last of them are answered."""

CALLS: Final = 3000
"""After so many all fall silent."""


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
    in_doubt: int
    """Senders that were told that nobody came though somebody had their value, in a kill or a stop."""
    broken: list[str]


def run(seed: int, tell: Callable[[str], None] | None = None) -> Result:
    """Run one seed; `tell` is given a line for all that happens."""
    kernel = Kernel(seed, tell)
    began = kernel.now
    luck, net = kernel.luck, Net(kernel)
    config = Config(drain_timeout_s=0.5)
    nodes = [Node(net, f"node{n}", f"10.0.0.{n + 1}", WORKERS, config) for n in range(luck.choice([1, 2, 3]))]
    kernel.go_on(BOOT_S)
    if len(nodes) > 1:
        ring = Snapshot([node.member for node in nodes])
        for node in nodes:
            node.follow(ring)
        kernel.go_on(MEET_S)
    topics = [f"topic{n}" for n in range(luck.choice([1, 4, 20]))]
    callers = [Caller(net, f"caller{n}", [node.address(JUNCTION) for node in nodes], topics) for n in range(CALLERS)]
    pubsubs = [PubSub(net, f"pubsub{n}", [node.address(PUBSUB) for node in nodes], topics) for n in range(PUBSUBS)]
    reloads: list[Span] = []
    stops: list[Span] = []

    def trouble() -> None:
        kind = luck.random()
        if kind < 0.35:
            reloads.append((kernel.now, kernel.now))
            luck.choice(nodes).reload()
        elif workers := luck.choice(nodes).workers():
            victim = luck.choice(workers)
            if kind < 0.5:
                seconds = luck.random() * luck.choice(STOPS_S)
                stops.append((kernel.now, kernel.now + seconds))
                victim.task.stop(seconds)
            elif kind < 0.75:
                victim.end(-signal.SIGKILL)
            else:
                victim.task.writes_left = luck.randint(1, 4)  # in the middle of a step

    def watch() -> None:
        if sum(len(each.calls) for client in callers for each in client.connections) >= CALLS:
            fall_silent()
        else:
            kernel.at(kernel.now + 0.01, watch)

    def fall_silent() -> None:
        for client in [*callers, *pubsubs]:
            client.is_done = True

    for _ in range(FAULTS):
        kernel.at(kernel.now + luck.random() * 4.0, trouble)
    for _ in range(CUTS):
        kernel.at(kernel.now + luck.random() * 4.0, lambda: luck.choice([*callers, *pubsubs]).cut())
    kernel.at(kernel.now, watch)
    kernel.go_on(SPEAK_S)
    fall_silent()
    kernel.go_on(LAST_ANSWERS_S)
    for client in [*callers, *pubsubs]:
        client.look_back()
    connections = [each for client in [*callers, *pubsubs] for each in client.connections]
    kills = [(at, at) for node in nodes for at in node.kills]
    history = History(connections, len(nodes), kills, reloads, stops)
    calls = [call for each in connections for call in each.calls.values()]
    return Result(
        len(calls),
        sum(call.answer == TRUE for call in calls),
        sum(len(each.published) for each in connections),
        kernel.trace,
        kernel.now - began,
        len(kills),
        in_doubt(history),
        broken(history),
    )
