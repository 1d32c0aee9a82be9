"""Cores that are linked against today's workers: clients of any of them say the same to both, and hear the same.

Links are delayed, take nothing for a while, or only so many bytes, end, and are made anew.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Final

import pytest

from skywalker.limits import Limits
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.workers.core.clusters import Cluster, End, Layout, old_cluster
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.linked import new_cluster
from tests.workers.core.test_calls import COMPARED, History
from tests.workers.core.worlds import LIMITS, Settings, Wire

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "100"))
STEPS: Final = 60
NOTHING: Final = bytes.fromhex("0000000a 92 11 a7 6e6f7468696e67 0000000b 92 0c cf 0080000000000000")
"""That a subscription which is none is in effect, and a call that is none is given back."""
UNHEARD: Final = (b":subscribe", b":unsubscribe", b":will", b":topic", b":hello", b":nodes", b":tokens")
LAYOUTS: Final = ([0, 0], [0, 1], [0, 0, 0], [0, 0, 1], [0, 1, 2])


class LinkedHistory(History):
    mesh_bytes: tuple[int, ...] = ()
    is_ending = False

    def __init__(self, seed: int) -> None:
        self.luck = luck = random.Random(seed)
        self.layout = Layout(luck.choice(LAYOUTS), luck)
        # What is queued for a sibling takes another number of bytes: either it is behind as soon as there is anything,
        # or never.
        self.has_siblings = siblings = len(set(self.layout.nodes)) < len(self.layout.nodes)
        mesh_bytes = luck.choice(self.mesh_bytes or ((0, 10**7) if siblings else (500, 3_000, 30_000, 10**7)))
        if luck.random() < 0.3:
            # What of a record is written does not count before all is, and records begin at other places.
            self.layout.is_sealed, mesh_bytes = True, 10**7
        cut = luck.randrange(len(NOTHING) + 1)
        self.layout.heard, self.layout.unwritten = NOTHING[:cut], NOTHING[cut:]
        limits = replace(LIMITS, mesh_bytes=mesh_bytes)
        self.olds, self.news = self.clusters(limits, seed)
        self.settings, self.pubsub, self.wills = Settings(limits), set[int](), list[bytes]()
        self.fds = 10
        self.kept: dict[int, bytes] = {}
        self.log: list[str] = [f"{self.layout.nodes} {mesh_bytes=}"]
        self.fds_of: dict[int, int] = {}
        for _ in range(4):
            self.connect()
        self.settle()
        # From now on links are made between two turns, where nothing is heard.
        self.layout.heard, self.layout.unwritten = b"", NOTHING

    def clusters(self, limits: Limits, seed: int) -> tuple[Cluster, Cluster]:
        return old_cluster(self.layout, limits), new_cluster(self.layout, limits, seed)

    def open_fds(self) -> list[int]:
        return [fd for fd in self.fds_of if not (wire_ := self.wires(fd)[0]).is_closed and not wire_.ended]

    def wires(self, fd: int) -> tuple[Wire, Wire]:
        at = self.fds_of[fd]
        return self.olds.worlds[at].wires[fd], self.news.worlds[at].wires[fd]

    def connect(self) -> None:
        if len(self.open_fds()) >= 8:
            return
        self.fds += 1
        at = self.fds_of[self.fds] = self.luck.randrange(len(self.layout.nodes))
        knows_errors = self.luck.random() < 0.7
        acks = knows_errors and self.luck.random() < 0.3
        for side in (self.olds, self.news):
            side.worlds[at].wires[self.fds] = Wire(self.fds)
            side.workers[at].connect(self.fds, knows_errors=knows_errors, acks=acks)
        self.log.append(f"connect {self.fds} to {at} {knows_errors=} {acks=}")

    unheard = UNHEARD

    def some_call(self) -> bytes:
        while True:
            call = super().some_call()
            if not any(name in call for name in self.unheard):
                return call

    def pass_time(self, fd: int) -> None:
        seconds = self.luck.choice((0.001, 0.02, 0.02, 0.05, 0.1, 0.5, 6.0, 31.0))
        self.log.append(f"{seconds} s go by")
        # What is due for the sake of links is looked at in its time: it may send calls on that are due later.
        until = self.olds.now + seconds
        while (due := self.news.next_alarm()) < until:
            for at in (due - 0.01, due):
                self.pass_until(at)
                self.settle()
        self.pass_until(until)

    def pass_until(self, at: float) -> None:
        self.olds.pass_until(at)
        self.news.pass_until(at)

    # What links do.

    def some_end(self) -> tuple[tuple[int, int], End, End]:
        which = self.luck.choice([*self.olds.ends])
        return which, self.olds.ends[which], self.news.ends[which]

    def delay(self) -> None:
        which, old, new = self.some_end()
        old.is_delayed = new.is_delayed = not old.is_delayed
        self.log.append(f"end {which} is {'' if old.is_delayed else 'not '}delayed")

    def choke(self) -> None:
        which, old, new = self.some_end()
        rooms = (0, 0, 1, 50, 2_000, 30_000, 10_000_000) if old.is_stream else (0, 10_000_000)
        old.room = new.room = self.luck.choice(rooms)
        self.log.append(f"end {which} has room for {old.room}")

    def cut(self) -> None:
        which, old, new = self.some_end()
        for end in (old, new, old.other, new.other):
            end.ended = True
        self.log.append(f"end {which} is cut")

    def finish(self) -> None:
        (one, other), old, new = self.some_end()
        if not old.is_stream or other >= 0 or old.is_closed or old.is_delayed or old.other.is_delayed:
            return
        # Today's loses what is unsent, and gives values to who is still there.
        if old.room > 1_000 and not self.olds.workers[one].abroad[old.fd].unsent:
            self.olds.workers[one].finish(old)
            self.news.workers[one].finish(new)
            self.log.append(f"{one} finishes with {~other}")
            self.settle()

    def kill(self) -> None:
        at = self.luck.randrange(len(self.layout.nodes))
        for side in (self.olds, self.news):
            side.kill(at)
        for fd in [fd for fd, where in self.fds_of.items() if where == at]:
            del self.fds_of[fd]
        self.log.append(f"{at} is killed")
        for one, other in self.layout.links():
            if at in (one, other):
                self.link(one, other)
        self.settle()

    def link(self, one: int, other: int) -> None:
        self.olds.link(one, other)
        self.news.link(one, other)
        self.log.append(f"{one} and {other} are linked")

    def mend(self) -> None:
        for one, other in self.layout.links():
            end = self.olds.ends[one, other]
            if end.is_closed and self.luck.random() < 0.5:
                self.link(one, other)
        self.settle()

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
        elif chance < 0.48:
            self.finish()

    def step(self) -> None:
        self.act_as_clients()
        self.act_on_links()
        if self.luck.random() < 0.4:
            self.pass_time(0)
        self.settle()

    def settle(self) -> None:
        self.olds.settle()
        self.news.settle()
        self.compare()

    def heard(self, taken: bytearray) -> object:
        """Return what was written to a client, as it is compared."""
        return taken

    def compare(self) -> None:
        for fd in self.fds_of:
            old, new = self.wires(fd)
            assert self.heard(new.taken) == self.heard(old.taken), f"{fd} is told something else"
            assert (new.is_closed, new.is_shut) == (old.is_closed, old.is_shut), fd
            old.taken.clear()
            new.taken.clear()
        for at, (old, new) in enumerate(zip(self.olds.workers, self.news.workers, strict=True)):
            assert new.held == old.held, at
            assert new.states() == old.states(), at
            for metric in COMPARED:
                cells = slice(metric.at, metric.end)
                assert new.memory[cells].tolist() == old.memory[cells].tolist(), (at, metric.name)

    def end(self) -> None:
        """All links work, and all clients leave: then nothing is held."""
        self.is_ending = True
        for side in (self.olds, self.news):
            for end in side.all_ends:
                end.is_delayed = False
                end.room = 10_000_000
        self.settle()
        for fd in self.open_fds():
            self.leave(fd)
        for fd in self.fds_of:
            for wire_ in self.wires(fd):
                wire_.room = 10_000_000
        for _ in range(3):
            self.pass_time(0)
            self.settle()
        for at, new in enumerate(self.news.workers):
            assert new.held == (0, 0)
            ends = [end for end in self.news.worlds[at].wires.values() if isinstance(end, End) and not end.is_closed]
            assert new.core.holds["links"] == len(ends), "none is kept that has ended"
            holds = new.core.holds
            left = {name: number for name, number in holds.items() if number and name != "links"}
            assert left == {}, left
            new.core.shut()


class SubscribedHistory(LinkedHistory):
    """With subscriptions, by clients that stay and take all: what ends first when one goes is in another order.

    So is what ends in one turn, if some of it was given a value, and back, while others of it ended.
    """

    unheard = UNHEARD[2:]
    mesh_bytes = (10_000_000,)

    def spoiled(self, body: bytes) -> bytes:
        return body

    def heard(self, taken: bytearray) -> object:
        frames, tail = split(bytes(taken), 2)
        return sorted(frames), tail

    def some_value(self) -> bytes:
        # Packets between siblings, of which so many are read in a turn, would be full at other places.
        if self.has_siblings:
            return values.pack(self.luck.randbytes(self.luck.choice((0, 3, 16, 200))))
        return super().some_value()

    def say(self, fd: int) -> None:
        said = b"".join(self.some_call() for _ in range(self.luck.choice((1, 1, 2, 5, 5, 40))))
        for wire_ in self.wires(fd):
            wire_.coming += said
        self.log.append(f"{fd} says {len(said)} bytes, {said[:3000].hex()}")

    def connect(self) -> None:
        super().connect()
        for fd in self.fds_of:
            self.read(fd)

    def read(self, fd: int) -> None:
        for wire_ in self.wires(fd):
            wire_.room = 1_000_000_000

    def leave(self, fd: int) -> None:
        if self.is_ending:
            super().leave(fd)

    def act_on_links(self) -> None:
        if self.luck.random() < 0.3:
            self.luck.choice((self.delay, self.choke))()
            # What comes then is heard before times run out: today's ends all that was due, whatever it hears meanwhile.
            self.settle()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", [LinkedHistory, SubscribedHistory])
def test_clients_of_linked_workers_hear_the_same(kind: type[LinkedHistory], part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = kind(seed)
        live(history, seed, STEPS, history.log)
