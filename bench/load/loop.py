"""The loop of a generator, in one thread: one epoll for all its connections, and what is due at some time."""

from __future__ import annotations

import heapq
import itertools
import select
import time
from collections.abc import Callable
from typing import Final

from bench.errors import BenchError, Stalled, Unreachable, WrongReply
from bench.load.plan import LOST, NOT_RECEIVED, UNANSWERED, UNREACHABLE, WRONG, Counts

LOOK_S: Final = 0.02
"""Seconds between looks whether all is answered."""

_KINDS: Final[dict[str, type[BenchError]]] = {
    LOST: Unreachable,
    UNREACHABLE: Unreachable,
    UNANSWERED: Stalled,
    NOT_RECEIVED: Stalled,
}
"""What ends a strict load."""


class Loop:
    """Turns, and counts what is told it. In a strict one the first thing that fails ends the load."""

    def __init__(self, *, strict: bool) -> None:
        self.epoll = select.epoll()
        self.counts = Counts(0)
        self.stopped = False
        self.clean = True  # whether nothing has failed
        self._strict = strict
        self._ready: dict[int, Callable[[], object]] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._unique = itertools.count()
        self.pace: Callable[[float], float] | None = None  # makes what is due; returns when there may be more to do

    def watch(self, fd: int, act: Callable[[], object]) -> None:
        """Have something done whenever a descriptor is ready, which the epoll is told of."""
        self._ready[fd] = act

    def later(self, when: float, act: Callable[[], None]) -> None:
        """Have something done at a time."""
        heapq.heappush(self._due, (when, next(self._unique), act))

    def turn_until(self, deadline: float) -> None:
        """Do what there is to do until a time, or until it is stopped."""
        ready, poll = self._ready, self.epoll.poll
        while (now := time.monotonic()) < deadline and not self.stopped:
            wait = deadline - now
            while self._due and self._due[0][0] <= now:
                heapq.heappop(self._due)[2]()
            if self._due:
                wait = min(wait, self._due[0][0] - now)
            if self.pace:
                # An epoll waits for whole milliseconds, which would make every call late.
                wait = min(wait, self.pace(now) - time.monotonic())
                select.select([self.epoll], [], [], max(0.0, wait))
                wait = 0.0
            for fd, _ in poll(wait):
                ready[fd]()

    def turn_while(self, waits: Callable[[], bool], patience_s: float) -> None:
        """Turn while something is still to come, but no longer than patience lasts."""
        deadline = time.monotonic() + patience_s
        while waits() and (now := time.monotonic()) < deadline:
            self.turn_until(now + LOOK_S)

    def fail(self, code: str, calls: int = 1, example: str = "") -> None:
        """Count calls that failed. Raises BenchError if it is strict."""
        if calls:
            self.clean = False
            self.counts.fail(code, calls)
            self.counts.example = self.counts.example or (example if code == WRONG else "")
        if self._strict:
            kind = _KINDS.get(code, WrongReply)
            raise kind(f"{calls} calls ended as {code}{f'; last came {example}' if example else ''}")

    def close(self) -> None:
        """End it."""
        self.epoll.close()
