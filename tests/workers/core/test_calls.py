"""Clients of one worker that say anything, read and leave as they like: what is so of all that they are told, is.

The worker counts right, and has nothing left once all of them have left. claims.py has the rest.
"""

from __future__ import annotations

import dataclasses
import os
import random
from typing import Final

import pytest

from tests.workers.core.claims import Calls
from tests.workers.core.clients import ACCESS, STRICT, TIMES, Clients, add_up, has_nothing, standing
from tests.workers.core.histories import PARTS, live, seeds
from tests.workers.core.worlds import LIMITS, MemoryWorker, Settings

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "120"))
STEPS: Final = 60


def settings_of(luck: random.Random) -> Settings:
    """Half of the histories are of a node as it comes, all others of one that is careful."""
    if luck.random() < 0.5:
        return Settings()
    limits = dataclasses.replace(LIMITS, max_rate=luck.choice((0, 0, 20, 100)), max_strangers=luck.choice((2, 9)))
    return Settings(limits, luck.choice((None, ACCESS, STRICT)), luck.random() < 0.2)


class History(Clients):
    def __init__(self, seed: int) -> None:
        luck = random.Random(seed)
        settings = settings_of(luck)
        self.knows_tokens = settings.access is not None
        self.has_opened = not settings.opens_late
        self.drains = False
        self.worker = MemoryWorker(seed, settings)
        super().__init__(luck, luck.choice((0.0, 0.0, 0.3, 0.6)))
        for _ in range(3):
            self.connect()

    def some_worker(self) -> MemoryWorker:
        return self.worker

    def settle_workers(self) -> None:
        self.worker.settle()

    def pass_time(self, seconds: float) -> None:
        self.worker.world.now += seconds
        self.log.append(f"{seconds} s go by")

    def speak_tls(self, fd: int) -> None:
        if fd not in self.kept:
            self.write(fd, b"\x16\x03\x01\x7f\xff and so on")
            self.log.append(f"{fd} speaks TLS")

    def open(self) -> None:
        self.has_opened = True
        self.worker.open()
        self.log.append("open")

    def drain(self) -> None:
        self.drains = True
        self.worker.hub.drain()
        self.log.append("drain")

    def step(self) -> None:
        luck = self.luck
        self.act_as_clients()
        if luck.random() < 0.002 and self.open_fds():
            self.speak_tls(luck.choice(self.open_fds()))
        if luck.random() < 0.4:
            self.pass_time(luck.choice(TIMES))
        if not self.has_opened and luck.random() < 0.1:
            self.open()
        if self.has_opened and not self.drains and luck.random() < 0.003:
            self.drain()
        self.settle()

    def look(self) -> None:
        super().look()
        add_up(self.worker, [*self.wires.values()])
        self.claims.are_counted([self.worker.memory])
        # What it is given while it agrees on acks waits for one, also once it agrees on that no longer, and until the
        # worker, which may have stopped reading it, knows that it has left.
        talks = [talk for fd, talk in self.talks.items() if not self.wires[fd].is_closed]
        acks = any(isinstance(talk, Calls) and talk.acks for talk in talks)
        if not (acks or self.wills or self.worker.core.choked()):
            assert standing(self.worker) == self.worker.core.held()[0], "nobody waits for anything else"

    def end(self) -> None:
        """All leave: then nothing is held."""
        if not self.has_opened:
            self.open()
        if self.luck.random() < 0.5:
            self.wait_for_all()
        if self.luck.random() < 0.3:
            self.read_all()
            self.worker.leave()
            self.look()
        for fd in self.open_fds():
            self.leave(fd)
        for _ in range(400):
            self.read_all()
            if not self.worker.core.holds["connections"] and not self.worker.turn.alarms:
                break
        has_nothing(self.worker)
        self.worker.core.shut()


@pytest.mark.parametrize("part", range(PARTS))
def test_clients_are_told_what_is_so(part: int) -> None:
    for seed in seeds(part, HISTORIES):
        history = History(seed)
        live(history, seed, STEPS, history.log)
