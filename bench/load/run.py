"""Has generator processes share a load, and gathers what they count."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Final, cast

from bench.errors import BenchError
from bench.load.counts import AFTER, Counts
from bench.load.outcome import Outcome
from bench.load.plan import Load
from bench.load.usage import Watch
from bench.plan import READY, Line, Window

GRACE_S: Final = 10.0
"""Seconds that generators get to report after the last calls must have been answered."""


class Generator:
    """A generator process, and what it has reported."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.counts: list[Counts] = []
        self.ended = False
        self._process = process
        self._input, self._output = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        self._tail = b""

    @classmethod
    @contextlib.contextmanager
    def started(cls, load: Load) -> Iterator[Generator]:
        """Start one on its part of a load; it is gone on leaving."""
        with subprocess.Popen(
            [sys.executable, "-m", "bench.load.generator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # a Ctrl-C at the terminal is for us, who then have it finish
        ) as process:
            try:
                generator = cls(process)
                generator._say(load)
                yield generator
            finally:
                process.kill()

    def await_ready(self) -> None:
        """Wait until it is connected. Raises BenchError if it cannot."""
        if self._output.readline().decode().rstrip("\n") != READY:
            self._fail()

    def work(self, window: Window) -> None:
        """Have it begin."""
        self._say(window)

    def stop(self) -> None:
        """Have it finish early."""
        with contextlib.suppress(BrokenPipeError):
            self._input.close()

    def fileno(self) -> int:
        """Return the descriptor on which it reports."""
        return self._output.fileno()

    def read(self) -> None:
        """Take in what it reports. Raises BenchError if it failed."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            self.ended = True
            if not self.counts or self.counts[-1].second != AFTER:
                self._fail()
            return
        *lines, self._tail = (self._tail + data).split(b"\n")
        self.counts += [Counts.from_json(line.decode()) for line in lines]

    def _say(self, line: Line) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has failed, which is noticed where its answer is read
            self._input.write(line.to_json().encode() + b"\n")
            self._input.flush()

    def _fail(self) -> None:
        raise BenchError(f"a generator failed with exit status {self._process.wait()}; it said above why")


def run(
    load: Load,
    duration_s: float,
    *,
    warm_up_s: float = 0.2,
    generators: int = 1,
    server: int | None = None,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Put a load on a node for `duration_s` after a warm-up, and watch process `server` meanwhile.

    `progress` is given what was found so far, each second. A KeyboardInterrupt ends it early; a second one is raised.
    Raises BenchError if the load cannot begin.
    """
    watch = Watch(server) if server else None
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Generator.started(part)) for part in load.parts(generators)]
        for generator in running:
            generator.await_ready()
        start = time.monotonic() + warm_up_s
        window = Window(start, start + duration_s)
        outcome = Outcome(load, warm_up_s, len(running))
        for generator in running:
            generator.work(window)
        gathering = Gathering(running, outcome, progress)
        try:
            gathering.until(window.start)
            if watch:
                watch.begin()
            gathering.until(window.stop)
        except KeyboardInterrupt:
            outcome.interrupted = True
            for generator in running:
                generator.stop()
        if watch:
            outcome.server = watch.end()
            outcome.server_ended = outcome.server is None
        gathering.until(time.monotonic() + load.patience_s + GRACE_S)
        if not all(generator.ended for generator in running):
            raise BenchError("a generator does not end")
    return outcome


class Gathering:
    """Reads what generators report, and joins their seconds."""

    def __init__(self, generators: list[Generator], outcome: Outcome, progress: Callable[[Outcome], None]) -> None:
        self._generators = generators
        self._outcome = outcome
        self._progress = progress
        self._joined = 0

    def until(self, deadline: float) -> None:
        """Read until a time, or the end of all. Raises BenchError if a generator failed."""
        with selectors.DefaultSelector() as selector:
            for generator in self._generators:
                if not generator.ended:
                    selector.register(generator, selectors.EVENT_READ, generator)
            while selector.get_map() and (now := time.monotonic()) < deadline:
                for key, _ in selector.select(deadline - now):
                    key.data.read()
                    if key.data.ended:
                        selector.unregister(key.fileobj)
                self._join()

    def _join(self) -> None:
        """Take in every second that all have reported."""
        while all(len(generator.counts) > self._joined for generator in self._generators):
            whole = Counts(self._generators[0].counts[self._joined].second)
            for generator in self._generators:
                whole.add(generator.counts[self._joined])
            self._outcome.add(whole, max(generator.counts[self._joined].cpu_s for generator in self._generators))
            self._joined += 1
            if whole.second != AFTER:
                self._progress(self._outcome)
