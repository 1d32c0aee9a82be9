"""One part of a load, in this process: made for the length of a window, and counted second by second."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from typing import Protocol

from bench.load.counts import AFTER, Counts
from bench.load.loop import Loop
from bench.load.pairs import Pairs
from bench.load.plan import Load, Window
from bench.load.publications import Publications


class Workload(Protocol):
    """What the connections of a load do."""

    @property
    def sent(self) -> int:
        """From the first on."""

    @property
    def received(self) -> int:
        """From the first on."""

    def connect(self) -> None:
        """Open all connections. Raises BenchError."""

    def begin(self) -> None:
        """Make the first calls."""

    def turn_until(self, deadline: float) -> None:
        """Work until a time, or until the loop is stopped."""

    def pause(self) -> None:
        """The window is over."""

    def tell(self, counts: Counts) -> None:
        """Add what has happened since this was called last."""

    def finish(self) -> None:
        """Have all come that is still to come, and judge it."""

    def close(self) -> None:
        """Hang up everywhere."""


class Work(contextlib.AbstractContextManager["Work"]):
    """Does it. `report` is given what each second has brought."""

    def __init__(self, load: Load, report: Callable[[Counts], None]) -> None:
        self._loop = Loop(strict=load.strict)
        self.workload: Workload = (Publications if load.subscribers else Pairs)(load, self._loop)
        self._report = report
        self._rests = bool(load.subscribers)

    def __exit__(self, *error: object) -> None:
        self.workload.close()
        self._loop.close()

    def run(self, window: Window, stop: int | None = None) -> None:
        """Work until the window ends or something can be read from `stop`; then have the last calls answered."""
        loop, workload = self._loop, self.workload
        if self._rests:  # before and after, so that it may be later than it was to be
            now = time.monotonic()
            window = Window(now, now + window.stop - window.start)
        if stop is not None:
            loop.epoll.register(stop, select.EPOLLIN)
            loop.watch(stop, lambda: self._stop(stop))
        workload.begin()
        workload.turn_until(window.start)
        warm_up = self._next(0)
        # What goes wrong is wrong at any time.
        loop.counts.errors, loop.counts.example = warm_up.errors, warm_up.example
        second, began = 0, time.monotonic()
        while began < window.stop and not loop.stopped:
            cpu = time.process_time()
            end = min(window.start + second + 1, window.stop)
            workload.turn_until(end)
            if end == window.stop:
                workload.pause()
            now = time.monotonic()
            loop.counts.seconds, loop.counts.cpu_s = now - began, time.process_time() - cpu
            second, began = second + 1, now
            self._report(self._next(second))
        loop.counts.second = AFTER
        if stop is not None and not loop.stopped:
            loop.epoll.unregister(stop)
        loop.stopped = False
        workload.finish()
        self._report(self._next(AFTER))

    def _stop(self, fd: int) -> None:
        self._loop.epoll.unregister(fd)
        self._loop.stopped = True

    def _next(self, second: int) -> Counts:
        """Begin to count for a second; return what was counted until now."""
        counts, self._loop.counts = self._loop.counts, Counts(second)
        self.workload.tell(counts)
        return counts
