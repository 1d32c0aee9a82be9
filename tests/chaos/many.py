"""A cluster of many real nodes: what it takes, and how long until all agree, as tables. Needs root.

    python -m tests.chaos.many --nodes 30

Each node is on a host of its own: network namespaces on one bridge, made for the run and gone after it. The rings that
each worker goes by are heard from the workers. While nodes die, fall silent and come back, the crowd of chaos uses the
cluster, and what it was told is judged. All is on one machine: if it is busy, so are all nodes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from skywalker.members import Member, Place, Snapshot
from skywalker.ring import token_of
from tests.chaos.clock import Clock, Task
from tests.chaos.crowd import Crowd
from tests.chaos.faults import LOOK_S, RETRY_S
from tests.chaos.net import Door
from tests.chaos.run import LAST_ANSWERS_S, ROUND_S, PubSubStatic, door
from tests.chaos.stalls import Starvation
from tests.cluster import network
from tests.cluster.clusters import Cluster, ClusterNode
from tests.cluster.meeting import meet
from tests.cluster.network import Host, Network
from tests.promises.history import NEVER_S, TRUE, History, Trouble
from tests.promises.rules import broken
from tests.simulation.kernel import NEVER
from tests.simulation.plan import plan
from tests.workers.wire_client import Clients, ConnectionEnded, decoded, packed

WORKERS: Final = 2
IDLE_S: Final = 20.0
"""Seconds for which it is seen what a cluster takes that nobody uses."""

UNUSED_S: Final = 60.0
"""Seconds more after which links that nobody uses are closed."""

REST_S: Final = 2.0
"""Seconds between two things that happen."""

FEWEST: Final = 4
WITHIN_S: Final = 60.0
ROUNDS: Final = 60
"""Rounds of the crowd, more than the run takes."""


class Ear:
    """Hears which ring a worker goes by."""

    def __init__(self, clock: Clock, node: ClusterNode, slot: int) -> None:
        self._clock = clock
        with node.machine.inside():
            self._wire = Clients((node.machine.address, node.port))(worker=slot)
        greeting = self._wire.answer(":hello", {"ring": True})
        self.place = Place(greeting["node"], slot)
        self.ring: str = greeting["ring"]
        self.since = clock.now
        """When it was heard."""
        self._task = Task(clock, f"an ear of {node.name}", "", self)
        self._task.poller.register(self._wire.socket.fileno())

    def step(self) -> float:
        """Hear what is said."""
        try:
            while self._wire.has_input():
                method, *_, said = decoded(self._wire.read_frame())
                if method == ":ring":
                    self.ring, self.since = said["version"], self._clock.now
        except ConnectionEnded:
            self._task.poller.unregister(self._wire.socket.fileno())
            self.close()
        return NEVER

    def close(self) -> None:
        """Hear nothing more."""
        self._wire.close()


class Used(NamedTuple):
    """What a node has used of its machine since it began: seconds of the processor, and packets and bytes sent."""

    cpu_s: float
    packets: int
    data: int


class Many:
    """The cluster, and who hears what its workers go by."""

    def __init__(self, clock: Clock, cluster: Cluster, net: Network) -> None:
        self.clock = clock
        self.cluster = cluster
        self.net = net
        self.troubles: list[Trouble] = []
        self.pids: dict[str, list[int]] = {}
        """Of the workers of each node that lives."""
        self._ears: dict[str, list[Ear]] = {}
        self._members: dict[str, Member] = {}

    def close(self) -> None:
        """Hear nobody any more."""
        for ears in self._ears.values():
            for ear in ears:
                ear.close()

    def start(self, nodes: Sequence[ClusterNode]) -> float:
        """Start these at once, or again; return when the last of them began to serve."""
        with ThreadPoolExecutor(len(nodes)) as threads:
            starts = [threads.submit(self._start, node) for node in nodes]
            while not all(each.done() for each in starts):
                self.clock.go_on(LOOK_S)
            served_at = max(each.result() for each in starts)
        for node in nodes:
            self.pids[node.name] = node.worker_pids()
            self._ears[node.name] = [Ear(self.clock, node, slot) for slot in range(WORKERS)]
            self._members[node.name] = next(each for each in node.snapshot() if each.name == node.name)
        return served_at

    def _start(self, node: ClusterNode) -> float:
        node.end()
        self.cluster.revive(node)
        return self.clock.now

    def kill(self, nodes: Sequence[ClusterNode]) -> None:
        """End all their processes at once."""
        for node in nodes:
            os.killpg(node.pid, signal.SIGKILL)
            del self.pids[node.name]

    def settle(self, nodes: Sequence[ClusterNode], since: float) -> float:
        """Return the seconds since then until all workers of these go by a ring of them, and of nobody else."""
        ring = Snapshot(self._members[node.name] for node in nodes).version
        ears = [ear for node in nodes for ear in self._ears[node.name]]
        self.clock.go_on(WITHIN_S, lambda: all(ear.ring == ring for ear in ears))
        others = {node.name for node in nodes for ear in self._ears[node.name] if ear.ring != ring}
        assert not others, f"they do not agree: {', '.join(sorted(others))} of {len(nodes)}"
        return max(0.0, max(ear.since for ear in ears) - since)

    @contextlib.contextmanager
    def trouble(self, kind: str, nodes: Sequence[ClusterNode], felt_s: float = 0.0) -> Iterator[None]:
        """Have it be known that there is trouble with these, for the length of a `with` block."""
        found = [Trouble(kind, node.name, self.clock.now, NEVER_S) for node in nodes]
        self.troubles += found
        yield
        for each in found:
            each.until = self.clock.now + felt_s

    # What it takes.

    def used(self) -> list[Used]:
        """Return what each node has used so far."""
        return [_used(node) for node in self.cluster.live]

    def idle(self, seconds: float) -> str:
        """Return what each node uses of a second, for so many in which nobody uses it, as cells of a table."""
        began, before = time.monotonic(), self.used()
        self.clock.go_on(seconds)
        seconds = time.monotonic() - began
        after = self.used()
        cpu, packets, data = (
            (sum(ends) - sum(begins)) / len(after) / seconds
            for begins, ends in zip(zip(*before, strict=True), zip(*after, strict=True), strict=True)
        )
        return f"{packets:.0f} | {data / 1e3:.1f} kB | {cpu:.1%}"

    def held(self) -> str:
        """Return what a process has in memory for itself, and descriptors, as cells of a table."""
        workers = [psutil.Process(pid) for pids in self.pids.values() for pid in pids]
        agents = [psutil.Process(pid) for node in self.cluster.live if (pid := node.agent_pid())]
        return f"{_held(workers)} | {_held(agents)}"

    def call_each_other(self) -> int:
        """Have every worker call every other; return how many calls met."""
        places = {ear.place: node for node in self.cluster.nodes for ear in self._ears[node.name]}
        ring, topics = self.cluster.snapshot().ring, _Topics()
        for number, place in enumerate(places):
            beyond = [*places][(number + WORKERS) % len(places)]
            sender, receiver = (self._client(places[each], each.worker) for each in (place, beyond))
            with sender, receiver:
                meet(sender, receiver, [topics.of(ring, owner) for owner in places], within=30.0)
        return len(places) ** 2

    def _client(self, node: ClusterNode, slot: int) -> Any:
        with node.machine.inside():
            return Clients((node.machine.address, node.port))(worker=slot)


class _Topics:
    """Topics that nobody has used, by owner."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._found: dict[Place, list[str]] = {}

    def of(self, ring: Any, owner: Place) -> str:
        """Return one that a worker owns."""
        found = self._found.setdefault(owner, [])
        while not found:
            topic = f"topic{next(self._numbers)}"
            self._found.setdefault(ring.owner(token_of(packed(topic))), []).append(topic)
        return found.pop()


def _used(node: ClusterNode) -> Used:
    assert isinstance(node.machine, Host)
    family = [psutil.Process(node.pid), *psutil.Process(node.pid).children(recursive=True)]
    cpu_ns = sum(int(Path(f"/proc/{each.pid}/schedstat").read_text().split()[0]) for each in family)
    lines = Path(f"/proc/{node.machine.pid}/net/dev").read_text().splitlines()
    sent = next(line.split() for line in lines if line.lstrip().startswith("eth0:"))[9:11]
    return Used(cpu_ns / 1e9, int(sent[1]), int(sent[0]))


def _held(of: Sequence[psutil.Process]) -> str:
    memory = sum(each.memory_full_info().uss for each in of) / len(of)
    return f"{memory / 1e6:.1f} MB, {sum(each.num_fds() for each in of) / len(of):.0f}"


def _tenth(nodes: Sequence[ClusterNode]) -> int:
    return max(1, len(nodes) // 10)


def takes(many: Many, idle_s: float, unused_s: float) -> Iterator[str]:
    """Yield rows of what nodes take while nothing happens, before and after each worker has called each other."""
    yield "| | a worker holds | an agent | a node sends packets a second | and bytes | and has of a core |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield f"| no links between workers | {many.held()} | {many.idle(idle_s)} |"
    met = many.call_each_other()
    yield f"| after {met:,} calls, of each worker on topics of each other | {many.held()} | {many.idle(idle_s)} |"
    many.clock.go_on(unused_s)
    yield f"| when these are long over | {many.held()} | {many.idle(idle_s)} |"


def agreement(many: Many, found_s: float) -> Iterator[str]:
    """Yield rows of how long it takes until all agree, who was started one after the other before."""
    clock, nodes = many.clock, many.cluster.nodes
    events = ("at the start", "one killed", "another", "a tenth at once", "all these back", "one silent", "it is back")
    yield f"| until all agree | {' | '.join(events)} |"
    yield f"|---|{'---:|' * len(events)}"
    took, left = [found_s], [*nodes]
    for count in (1, 1, _tenth(nodes)):
        dead, left = left[-count:], left[:-count]
        with many.trouble("death", dead):
            began = clock.now
            many.kill(dead)
            took.append(many.settle(left, began))
        clock.go_on(REST_S)
    back = nodes[len(left) :]
    with many.trouble("join", back):
        took.append(many.settle(nodes, many.start(back)))
    clock.go_on(REST_S)
    silent = nodes[0]
    assert isinstance(silent.machine, Host)
    with many.trouble("part", [silent], RETRY_S):
        began = clock.now
        many.net.isolate(silent.machine)
        took.append(many.settle(nodes[1:], began))
        clock.go_on(REST_S)
        began = clock.now
        many.net.heal()
        took.append(many.settle(nodes, began))
    clock.go_on(REST_S)
    yield f"| {len(nodes)} nodes of {WORKERS} workers | {' | '.join(f'{seconds:.2f} s' for seconds in took)} |"


def run(nodes: int, seed: int, idle_s: float = IDLE_S, unused_s: float = UNUSED_S) -> list[str]:
    """Print the tables of a cluster of so many; return what did not hold of what its clients were told."""
    assert nodes >= FEWEST, "some die, and some stay"
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(Network(nodes))
        cluster = stack.enter_context(Cluster(nodes, machines=net.hosts, workers=WORKERS, drain_timeout_s=1.0))
        cluster.discovery = pubsub = PubSubStatic(cluster.nodes)
        clock = Clock(seed)
        stack.callback(clock.close)
        many = stack.enter_context(contextlib.closing(Many(clock, cluster, net)))
        few = _tenth(cluster.nodes)
        served_at = [many.start(cluster.nodes[first : first + few]) for first in range(0, nodes, few)]
        found_s = many.settle(cluster.nodes, served_at[-1])
        print(*takes(many, idle_s, unused_s), sep="\n", end="\n\n", flush=True)

        def doors(_: int, kind: str) -> Mapping[Door, str]:
            return {
                door(pubsub.address(node) if kind == "pubsub" else (node.machine.address, node.port), node.machine): (
                    node.name
                )
                for node in cluster.nodes[: -few - 2]  # that stay: who is refused by a dead one has lost nothing
            }

        crowd = Crowd(clock, [plan(clock.luck.getrandbits(32)) for _ in range(ROUNDS)], ROUND_S, doors)
        stack.callback(crowd.close)
        Starvation(clock, lambda: (pid for pids in many.pids.values() for pid in pids)).look()
        clock.go_on(REST_S)
        print(*agreement(many, found_s), sep="\n", end="\n\n", flush=True)
        history = History(crowd.finish(LAST_ANSWERS_S), nodes, many.troubles, stalls=clock.stalls)
        calls = [*history.calls()]
        met = sum(call.answer == TRUE for call in calls)
        published = sum(len(each.published) for each in history.connections)
        print(f"Meanwhile {len(calls):,} calls were made, {met:,} of which met, and {published:,} values published.")
        assert "Traceback" not in "".join(node.log for node in cluster.nodes)
        return broken(history)


def main() -> int:
    """Print the tables; return 1 if somebody was told what is not so."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.many", description=__doc__)
    parser.add_argument("--nodes", type=int, default=30, help=f"{FEWEST} to 200")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    if not FEWEST <= options.nodes <= 200:
        parser.error(f"{FEWEST} to 200 nodes")
    if why := network.obstacle():
        parser.error(why)
    found = run(options.nodes, options.seed)
    print(f"{len(found)} did not hold, seed {options.seed}:" if found else "All that was promised held.")
    print(*found[:10], sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
