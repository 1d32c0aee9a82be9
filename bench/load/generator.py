"""A process that makes the calls of its parts of loads: `python -m bench.load.generator`, started by bench.load.run.

It reads a Load from standard input, connects, answers READY, reads a Window, works, and writes Counts, a line for each
second; then it may be given the next. It ends when standard input does, early where that is in the middle of a window;
what was counted until then is told in any case.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.load.loop import Loop
from bench.load.pairs import Pairs
from bench.load.plan import AFTER, Counts, Load, Window
from bench.load.publications import Publications


class Work(contextlib.AbstractContextManager["Work"]):
    """Does it. `report` is given what each second has brought."""

    def __init__(self, load: Load, report: Callable[[Counts], None]) -> None:
        self._loop = Loop(strict=load.strict)
        self.workload: Pairs | Publications = (Publications if load.subscribers else Pairs)(load, self._loop)
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


READY: Final = "ready"
"""What is written once all is connected."""


def main() -> int:
    """Do what standard input says; return the exit status."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The kernel wakes us 50 us late, to save power, unless told otherwise: calls that are due would be late as much.
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")
    try:
        while line := sys.stdin.readline():
            with Work(Load.from_json(line), _write) as work:
                work.workload.connect()
                print(READY, flush=True)
                if line := sys.stdin.readline():
                    gc.freeze()  # a collection that goes through every lane takes milliseconds
                    work.run(Window.from_json(line), sys.stdin.fileno())
            gc.unfreeze()
    except BenchError as error:
        print(f"generator: {error}", file=sys.stderr)
        return 1
    return 0


def _write(counts: Counts) -> None:
    print(counts.to_json(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
