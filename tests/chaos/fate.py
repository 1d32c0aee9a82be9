"""What becomes of the nodes of a cluster while clients use it, and when they had come to agree again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from tests.chaos.agreement import Calm, Event
from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.network import Host, Network
from tests.workers.wire_client import ConnectionEnded

LOOK_S: Final = 0.1
"""Seconds between looks whether all agree."""

LONGEST_TROUBLE_S: Final = 8.0
"""Seconds that a node stays frozen, or cut off, at most: for longer than it takes the others to give it up."""

PATIENCE_S: Final = 10.0
"""Seconds for the nodes to agree before the next thing happens anyway."""

FEWEST: Final = 2
"""Nodes that live and are well, at any time."""


class Fate:
    """Strikes at random until stopped, from a thread of its own, and another one watches how they agree."""

    def __init__(self, cluster: Cluster, dice: random.Random, network: Network | None) -> None:
        self.events: list[Event] = []
        self.calms: list[Calm] = []
        self.troubles: list[BaseException] = []
        self._cluster = cluster
        self._dice = dice
        self._network = network
        self._groups: tuple[frozenset[str], ...] | None = None  # None while something is being done
        self._cut: tuple[ClusterNode, ...] = ()
        self._over = threading.Event()
        self._watched = threading.Event()
        self._calm = threading.Event()
        self._threads = [threading.Thread(target=self._guarded, args=[each]) for each in (self._strike, self._watch)]
        self._deeds: dict[str, Callable[[], None]] = {
            "killed": self._kill, "drained": self._drain, "joined": self._join, "frozen": self._freeze,
            "lost its agent": self._kill_agent,
        }  # fmt: skip
        if network is not None:
            self._deeds["cut off"] = self._cut_off

    def start(self) -> None:
        """Begin. All nodes must live and agree."""
        self._regroup()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Do nothing more, but undo what can be undone."""
        self._over.set()

    @property
    def is_done(self) -> bool:
        """Whether all is undone, and all nodes agree, or had time to."""
        return not self._threads[0].is_alive()

    def close(self) -> None:
        """Watch no longer."""
        self._over.set()
        self._watched.set()
        for thread in self._threads:
            thread.join()

    @property
    def kinds(self) -> set[str]:
        """What it can do here."""
        return {*self._deeds}

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self.troubles.append(error)
            self._over.set()

    def _strike(self) -> None:
        kinds = [*self._deeds]
        while not self._over.is_set():
            # Each once in a round, so that a short run has all of them too.
            self._dice.shuffle(kinds)
            for kind in kinds:
                time.sleep(self._dice.choice((0.2, 0.5, 1.0, 3.0)))
                if self._over.is_set() and kind in {event.kind for event in self.events}:
                    continue
                self._deeds[kind]()
                if self._dice.random() < 0.6:
                    self._calm.wait(PATIENCE_S)
        self._thaw_all()
        self._heal()
        self._calm.wait(PATIENCE_S)

    # Deeds.

    def _do(self, kind: str, nodes: Iterable[ClusterNode], deed: Callable[[], None]) -> None:
        self._groups = None
        self._calm.clear()
        event = Event(kind, tuple(node.name for node in nodes), time.monotonic(), 0.0)
        self.events.append(event)
        deed()
        event.end = time.monotonic()
        self._regroup()

    def _regroup(self) -> None:
        live = frozenset(node.name for node in self._cluster.live)
        cut = frozenset(node.name for node in self._cut)
        self._groups = tuple(group for group in (live - cut, live & cut) if group)

    def _victim(self) -> ClusterNode | None:
        if len(self._cluster.live) <= FEWEST < len(self._cluster.nodes):
            self._join()
        live = self._cluster.live
        return self._dice.choice(live) if len(live) > FEWEST else None

    def _kill(self) -> None:
        if victim := self._victim():
            self._do("killed", [victim], victim.kill)

    def _drain(self) -> None:
        if victim := self._victim():

            def drain() -> None:
                victim.drain()
                victim.wait_for_end(20)

            self._do("drained", [victim], drain)

    def _join(self) -> None:
        if len(self._cluster.live) == len(self._cluster.nodes):
            self._kill()
        dead = [node for node in self._cluster.nodes if not node.lives]
        self._dice.shuffle(dead)
        for node in dead[: self._dice.choice((1, 2, 5))]:
            self._do("joined", [node], lambda node=node: self._cluster.revive(node))

    def _freeze(self) -> None:
        if victim := self._victim():
            self._do("frozen", [victim], victim.freeze)
            self._over.wait(self._dice.uniform(0.05, LONGEST_TROUBLE_S))
            self._thaw_all()

    def _thaw_all(self) -> None:
        for node in self._cluster.nodes:
            if node.is_frozen:
                self._do("thawed", [node], node.thaw)

    def _kill_agent(self) -> None:
        live = self._cluster.live
        victim = self._dice.choice(live)
        self._do("lost its agent", [victim], victim.kill_agent)

    def _cut_off(self) -> None:
        assert self._network is not None
        network, live = self._network, self._cluster.live
        self._cut = tuple(self._dice.sample(live, self._dice.randint(1, max(1, len(live) // 2))))
        hosts = [node.machine for node in self._cut if isinstance(node.machine, Host)]
        self._do("cut off", self._cut, lambda: network.isolate(*hosts))
        self._over.wait(self._dice.uniform(0.05, LONGEST_TROUBLE_S))
        self._heal()

    def _heal(self) -> None:
        if self._cut and self._network is not None:
            healed, self._cut = self._cut, ()
            self._do("healed", healed, self._network.heal)

    # Agreement.

    def _watch(self) -> None:
        current: Calm | None = None
        while not self._watched.wait(LOOK_S):
            groups = self._groups
            if current is not None and current.groups is not groups:
                current = None
            agree = groups is not None and self._agree(groups)
            now = time.monotonic()
            if groups is None or self._groups is not groups or not agree:
                current = None
            elif current is None:
                current = Calm(now, now, groups)
                self.calms.append(current)
                self._calm.set()
            else:
                current.end = now

    def _agree(self, groups: tuple[frozenset[str], ...]) -> bool:
        nodes = {node.name: node for node in self._cluster.nodes}
        try:
            return all(self._cluster.is_settled(nodes[name] for name in group) for group in groups)
        except (AssertionError, ConnectionEnded, OSError):
            return False  # one of them is just being killed
