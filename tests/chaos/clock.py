"""The real clock, and one thread for all clients: what the simulation has its kernel for."""

from __future__ import annotations

import heapq
import itertools
import random
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from tests.promises.history import Stall
from tests.simulation.kernel import NEVER, Process

TURN_S: Final = 0.02
"""Seconds that clients may take for a turn, or wake up too late, before that counts as a stall of the machine."""

NOTES: Final = 100_000


class Clock:
    """It has clients run, one after the other, when something that they wait for is there or when it is time."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.luck = random.Random(seed)
        self.stalls: list[Stall] = []
        self.notes: deque[tuple[float, str, str]] = deque(maxlen=NOTES)
        """What happened lately: when, to whom, and what."""
        self.ready = select.epoll()
        self.tasks: dict[int, Task] = {}
        """By the descriptor that tells of what each waits for."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    @property
    def now(self) -> float:
        """The time."""
        return time.monotonic()

    def note(self, who: str, what: str) -> None:
        """Something happened."""
        self.notes.append((self.now, who, what))

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Have something called at that time."""
        heapq.heappush(self._events, (when, next(self._count), call))

    def go_on(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let so much time go by, less if it is over before."""
        until = self.now + seconds
        while self.now < until and not is_over():
            due = min(self._events[0][0] if self._events else NEVER, until)
            slept = self.now
            found = self.ready.poll(max(0.0, due - slept))
            began = min(due, self.now) if slept < due else self.now
            for fd, _ in found:
                if (task := self.tasks.get(fd)) is not None:
                    task.run()
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            if self.now - began > TURN_S:
                self.stalls.append(Stall(began, self.now, self.now - began))

    def close(self) -> None:
        """Let nobody run any more."""
        for task in self.tasks.values():
            task.poller.close()
        self.ready.close()


class Poller:
    """An epoll that never waits: the clock does."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.fileno = self._epoll.fileno
        self.close = self._epoll.close
        self.register = self._epoll.register
        self.modify = self._epoll.modify
        self.unregister = self._epoll.unregister

    def poll(self) -> list[tuple[int, int]]:
        """Return what is ready."""
        return self._epoll.poll(0)


class Task:
    """A client as the clock knows it."""

    def __init__(self, kernel: Clock, name: str, host: str, process: Process) -> None:
        self.name = name
        self.host = host
        self.luck = random.Random(f"{kernel.seed} {name}")
        self._kernel = kernel
        self._process = process
        self.poller = Poller()
        kernel.tasks[self.poller.fileno()] = self
        kernel.ready.register(self.poller.fileno(), select.EPOLLIN)
        self._stopped_until = 0.0

    def clock(self) -> float:
        """Return the time."""
        return self._kernel.now

    def wake(self, at: float) -> None:
        """Have it run at that time in any case."""
        if at < NEVER:
            self._kernel.at(at, self.run)

    def run(self) -> None:
        """Have it do what there is to do now, unless it stands still."""
        if self._kernel.now >= self._stopped_until:
            self.wake(self._process.step())

    def stop(self, seconds: float) -> None:
        """Stand still for so long."""
        self._stopped_until = self._kernel.now + seconds
        self._kernel.ready.modify(self.poller.fileno(), 0)
        self._kernel.at(self._stopped_until, self._go_on)

    def _go_on(self) -> None:
        if self._kernel.now >= self._stopped_until:
            self._kernel.ready.modify(self.poller.fileno(), select.EPOLLIN)
            self.run()
