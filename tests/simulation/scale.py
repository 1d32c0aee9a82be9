"""What a cluster of many nodes takes, as a table: `python -m tests.simulation.scale`.

One worker, with all that it has in memory, is told of 1,000 nodes of 64 workers, and linked to some of them. Whole
nodes, with simulated kernels between, find each other, die, one and many at once, and fall silent; what is measured
there is simulated time until all that are left agree.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from skywalker.address import Address
from skywalker.discovery.pace import ping_s
from skywalker.members import Member, Place, Snapshot
from skywalker.ring import TOKENS_PER_NODE
from skywalker.wire.junction import NIL
from tests.simulation.kernel import Kernel
from tests.simulation.machine import Net
from tests.simulation.membership import Founder
from tests.simulation.node import Node, agree
from tests.simulation.plan import NODE, Plan
from tests.workers.core.clusters import pair
from tests.workers.core.worlds import LIMITS, MemoryWorker, Settings, World
from workers.calls.newcomer import Newcomer
from workers.engine.transport import PlainSocket
from workers.ipc import snapshots
from workers.nodes.relayed import Relayed
from workers.nodes.relays import Passage
from workers.stats.hands import Hands

SIZES: Final = (10, 30, 100)
"""Nodes of simulated clusters, unless told otherwise; the last take a minute, and 300 a quarter of an hour."""

NODES: Final = 1_000
WORKERS: Final = 64
LINKS: Final = 1_000
"""That the one worker has when it is seen what they take."""

WITHIN_S: Final = 60.0
PAGE_BYTES: Final = 4096


def resident() -> int:
    """Return how many bytes of memory this process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def members(nodes: int, workers: int) -> list[Member]:
    """Return nodes that there might be."""
    luck = random.Random(1)
    return [
        Member(
            f"{number:036}",
            f"node{number}",
            Address(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 3443),
            workers,
            True,
            tuple(sorted(luck.randrange(-(2**63), 2**63) for _ in range(TOKENS_PER_NODE))),
        )
        for number in range(nodes)
    ]


def one_worker(nodes: int, workers: int, links: int) -> Iterator[str]:
    """Yield rows of what a worker of such a cluster takes."""
    all_ = members(nodes, workers)
    hands = Hands(1)
    hands.begin(0)
    world = World()
    worker = MemoryWorker(1, Settings(LIMITS), all_[0], 0, hands.hand(0), world)
    whole = Snapshot(all_)
    file, before = snapshots.write(whole), resident()
    took = _follow(worker, file)
    held = f"{(resident() - before) / 1e6:.0f} MB, {took:.2f} s of its processor"
    yield f"| the first ring of {nodes:,} nodes x {workers} | {held} |"
    before = resident()
    for number in range(links):
        end, _ = pair((10_000 + 2 * number, 10_001 + 2 * number), is_stream=True)
        world.wires[end.fd] = end  # type: ignore[assignment]  # as it is for a link in clusters.py
        place = Place(all_[1 + number % (nodes - 1)].id, number // (nodes - 1))
        newcomer = Newcomer("a node", place, f"{number}", False, False, True, 0.0, 0.0)
        worker.hub.peers.welcome(PlainSocket(end), b"", newcomer)  # type: ignore[arg-type]  # as there
        worker.one_turn()
    yield f"| a link to a worker of another node | {(resident() - before) / links / 1e3:.1f} kB, 1 descriptor |"
    first, second = (worker.hub.peers.asking[number].link for number in range(2))
    before = resident()
    for number in range(links):
        place = Place(all_[1 + number % (nodes - 1)].id, WORKERS - 1)
        newcomer = Newcomer("a node", place, f"{number}", False, False, True, 0.0, 0.0)
        stream = first.open_stream(Passage.__new__(Passage))
        worker.hub.peers.welcome(Relayed(stream, worker.turn, None), b"", newcomer)
        worker.one_turn()
    yield f"| one through a sibling | {(resident() - before) / links / 1e3:.1f} kB |"
    before = resident()
    kept = []
    for _ in range(links):
        near = first.open_stream(Passage.__new__(Passage))
        kept.append(Passage(near, NIL, place, "", worker.hub.peers.relays))
        kept[-1].leads(second)
        worker.one_turn()
    yield f"| one of a sibling that passes it | {(resident() - before) / links / 1e3:.1f} kB |"
    for gone in (1, nodes // 10):
        began = time.process_time()
        left = Snapshot(all_[:-gone])
        whole.diff(left)
        file = snapshots.write(left)
        made = time.process_time() - began
        yield f"| a ring without {gone} of them | {_follow(worker, file):.2f} s, and its agent {made:.2f} s |"
        _follow(worker, snapshots.write(whole))


def _follow(worker: MemoryWorker, file: BinaryIO) -> float:
    """Have a worker read a ring, and go by it; return the seconds of its processor."""
    began = time.process_time()
    with file:
        worker.hub.follow(snapshots.content(file))
    return time.process_time() - began


def agreement(nodes: int, workers: int) -> Iterator[str]:
    """Yield a row of how long it takes until all nodes of a simulated cluster agree."""
    kernel = Kernel(1)
    net = Net(kernel)
    founder = Founder(net, Plan(1, nodes, workers, 1, (), (), way="dns"))
    all_ = [founder.node(f"{NODE}{number}") for number in range(nodes)]

    def settle(who: list[Node]) -> float:
        began = kernel.now
        while not agree(who):
            assert kernel.now - began < WITHIN_S, "they never agree"
            kernel.go_on(0.05)
        return kernel.now - began

    found = settle(all_)
    left, took = [*all_], []
    for many, loses_power in ((1, False), (1, False), (max(1, nodes // 10), False), (1, True)):
        dead, left = left[-many:], left[:-many]
        for node in dead:
            node.die(back_s=1e6, loses_power=loses_power)
        took.append(f"{settle(left):.2f} s")
    yield f"| {nodes} nodes of {workers} workers | {found:.2f} s | {' | '.join(took)} |"
    for node in all_:
        node.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[*SIZES], help="of simulated clusters")
    sizes = parser.parse_args().nodes
    print("| a worker | takes |", "|---|---:|", *one_worker(NODES, WORKERS, LINKS), sep="\n")
    each = 1 / ping_s(NODES)
    said = (NODES - 1) * each
    pings = f"{said:.0f} pings a second to others, and {said:.0f} answers, of a worker {said / WORKERS:.0f}"
    print(f"| what a node says while nothing happens | {pings} |", end="\n\n")
    print("| until all agree | at the start | one killed | another | a tenth at once | one silent |")
    print("|---|---:|---:|---:|---:|---:|")
    for nodes in sizes:
        print(*agreement(nodes, 2), sep="\n", flush=True)


if __name__ == "__main__":
    main()
