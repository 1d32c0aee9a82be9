"""Clients of workers that are linked, of one node or of several, and say anything: what is so of all they are told, is.

Links are delayed, take nothing for a while, or only so many bytes, end, and are made anew; workers die.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Final

import pytest

from tests.workers.core.claims import Lost
from tests.workers.core.clients import TIMES, Clients, add_up, has_nothing
from tests.workers.core.clusters import Cluster, End, Layout
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.worlds import LIMITS, MemoryWorker

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "60"))
STEPS: Final = 60
NOTHING: Final = bytes.fromhex("0000000a 92 11 a7 6e6f7468696e67 0000000b 92 0c cf 0080000000000000")
"""That a subscription which is none is in effect, and a call that is none is given back."""
MUCH: Final = 10**7
"""Bytes that wait for another worker, of which there are never so many."""
LAYOUTS: Final = ([0, 0], [0, 1], [0, 0, 0], [0, 0, 1], [0, 1, 2])


class LinkedHistory(Clients):
    most = 8

    def __init__(self, seed: int) -> None:
        luck = random.Random(seed)
        self.layout = Layout(luck.choice(LAYOUTS), luck)
        self.layout.is_sealed = luck.random() < 0.3
        self.layout.both_ways = luck.random() < 0.6
        cut = luck.randrange(len(NOTHING) + 1)
        self.layout.heard, self.layout.unwritten = NOTHING[:cut], NOTHING[cut:]
        self.mesh_bytes = luck.choice((100_000, MUCH, MUCH))
        self.cluster = Cluster(self.layout, replace(LIMITS, mesh_bytes=self.mesh_bytes), seed)
        self.memories = [worker.memory for worker in self.cluster.workers]  # also of those that are dead
        super().__init__(luck, luck.choice((0.0, 0.0, 0.3)))
        self.share_of_moves = luck.choice((0.0, 0.2, 0.8))
        self.log.append(f"{self.layout.nodes} mesh_bytes={self.mesh_bytes}")
        for _ in range(4):
            self.connect()

    def some_worker(self) -> MemoryWorker:
        at = self.luck.randrange(len(self.layout.nodes))
        self.log.append(f"somebody comes to {at}")
        return self.cluster.workers[at]

    def pass_time(self, seconds: float) -> None:
        self.log.append(f"{seconds} s go by")
        self.cluster.pass_until(self.cluster.now + seconds)

    def settle_workers(self) -> None:
        self.cluster.settle()

    # What links do.

    def some_end(self) -> tuple[tuple[int, int], End]:
        which = self.luck.choice([*self.cluster.ends])
        return which, self.cluster.ends[which]

    def delay(self) -> None:
        which, end = self.some_end()
        end.is_delayed = not end.is_delayed
        self.log.append(f"end {which} is {'' if end.is_delayed else 'not '}delayed")

    def choke(self) -> None:
        which, end = self.some_end()
        rooms = (0, 0, 1, 50, 2_000, 30_000, 10_000_000) if end.is_stream else (0, 10_000_000)
        end.room = self.luck.choice(rooms)
        self.log.append(f"end {which} has room for {end.room}")

    def cut(self) -> None:
        which, end = self.some_end()
        end.ended = end.other.ended = True
        self.log.append(f"end {which} is cut")

    def finish(self) -> None:
        """One that is asked by another node parts, when that asks nothing: what a call met there might not be told.

        Where it asks as well, it parts when nothing waits. What is asked on the way is not lost: the other is delayed.
        """
        (one, other), end = self.some_end()
        if not end.is_stream or other >= 0 or end.is_closed or end.is_delayed or end.other.is_delayed:
            return
        worker, asker = self.cluster.workers[one], self.cluster.workers[~other]
        link, asks = worker.abroad[end.fd], asker.abroad[end.other.fd]
        is_idle = link.is_unused() if self.layout.both_ways else asks.asks_nothing() and not asks.subscribes
        if end.room > 1_000 and is_idle:
            end.is_delayed = self.luck.random() < 0.5
            worker.far[~other].lost(link)
            link.finish()
            for _ in range(self.luck.randrange(4)):
                self.act_as_clients()
            self.settle()
            assert end.is_closed or end.is_delayed, "the other end closes once it has heard all"
            self.log.append(f"{one} has finished with {~other}")

    def kill(self) -> None:
        at = self.luck.randrange(len(self.layout.nodes))
        dead = self.cluster.workers[at]
        self.cluster.kill(at)
        self.memories.append(self.cluster.workers[at].memory)
        for fd in [fd for fd, home in self.homes.items() if home is dead]:
            self.look()
            del self.homes[fd]
        self.log.append(f"{at} is killed")
        for one, other in self.layout.links():
            if at in (one, other):
                self.link(one, other)

    def link(self, one: int, other: int) -> None:
        self.cluster.link(one, other)
        self.log.append(f"{one} and {other} are linked")

    def mend(self, share: float = 0.5) -> None:
        for one, other in self.layout.links():
            if self.cluster.ends[one, other].is_closed and self.luck.random() < share:
                self.link(one, other)

    def draw(self) -> None:
        """Have connections go to siblings, if they can, as if most of what they call was theirs."""
        for worker in self.cluster.workers:
            links = worker.hub.siblings.all()
            for client in worker.hub.clients if links else ():
                worker.core.draw(client.handle, self.luck.choice(links).handle)
        self.log.append("all are drawn")

    def act_on_links(self) -> None:
        chance = self.luck.random()
        if chance < 0.15:
            self.delay()
        elif chance < 0.3:
            self.choke()
        elif chance < 0.33:
            self.cut()
        elif chance < 0.45:
            self.mend()
        elif chance < 0.46:
            self.kill()
        elif chance < 0.49:
            self.finish()

    def step(self) -> None:
        self.act_as_clients()
        self.act_on_links()
        if self.luck.random() < self.share_of_moves:
            self.draw()
        if self.luck.random() < 0.4:
            self.pass_time(self.luck.choice(TIMES))
        self.settle()

    def look(self) -> None:
        for worker in self.cluster.workers:
            self.homes.update((fd, worker) for fd in worker.world.wires if fd in self.wires)
        closed = [end.is_stream for end in self.cluster.all_ends if end.is_closed]
        self.claims.lost = Lost(siblings=closed.count(False), abroad=closed.count(True))
        super().look()
        self.claims.lost_before = self.claims.lost
        for worker in self.cluster.workers:
            fds = [fd for fd, home in self.homes.items() if home is worker]
            add_up(worker, [self.wires[fd] for fd in fds])
        self.claims.are_counted(self.memories)

    def read_all(self) -> None:
        self.mend(1.0)  # the link to who falls behind ends again
        super().read_all()

    def end(self) -> None:
        """All links work, and all clients leave: then nothing is held."""
        for end in self.cluster.all_ends:
            end.is_delayed = False
            end.room = 10_000_000
        self.settle()
        if self.mesh_bytes == MUCH and self.luck.random() < 0.5:
            self.wait_for_all()
        for fd in self.open_fds():
            self.leave(fd)
        for _ in range(400):
            self.pass_time(31.0)
            self.read_all()
            if not any(worker.core.holds["rows"] for worker in self.cluster.workers):
                break
        for worker in self.cluster.workers:
            ends = [end for end in worker.world.wires.values() if isinstance(end, End) and not end.is_closed]
            assert worker.core.holds["links"] == len(ends), "none is kept that has ended"
        for end in self.cluster.all_ends:
            end.ended = True
        self.settle()
        self.pass_time(31.0)
        self.settle()
        for worker in self.cluster.workers:
            has_nothing(worker)
            worker.core.shut()


@pytest.mark.parametrize("part", range(PARTS))
def test_clients_of_linked_workers_are_told_what_is_so(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = LinkedHistory(seed)
        live(history, seed, STEPS, history.log)
