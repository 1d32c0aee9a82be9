"""Has generator processes share a load, and gathers what they count."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Final, cast

from bench.errors import BenchError
from bench.load.generator import READY
from bench.load.outcome import Outcome
from bench.load.plan import AFTER, Counts, Line, Load, Window
from bench.servers.usage import Watch

WARM_UP_S: Final = 0.2
"""Seconds of a load before what is counted, unless told otherwise."""

GRACE_S: Final = 10.0
"""Seconds that generators get to report after the last calls must have been answered."""


class Generator:
    """A generator process, and what it has reported of its part of a load."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.counts: list[Counts] = []
        self._process = process
        self._input, self._output = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        self._tail = b""

    @classmethod
    @contextlib.contextmanager
    def started(cls) -> Iterator[Generator]:
        """Start one; it is gone on leaving."""
        with subprocess.Popen(
            [sys.executable, "-m", "bench.load.generator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # a Ctrl-C at the terminal is for us, who then have it finish
        ) as process:
            try:
                yield cls(process)
            finally:
                process.kill()

    def prepare(self, load: Load) -> None:
        """Have it connect."""
        self.counts = []
        self._say(load)

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

    @property
    def ended(self) -> bool:
        """Whether it has reported all."""
        return bool(self.counts) and self.counts[-1].second == AFTER

    def fileno(self) -> int:
        """Return the descriptor on which it reports."""
        return self._output.fileno()

    def read(self) -> None:
        """Take in what it reports. Raises BenchError if it failed."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            self._fail()
        *lines, self._tail = (self._tail + data).split(b"\n")
        self.counts += [Counts.from_json(line.decode()) for line in lines]

    def _say(self, line: Line) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has failed, which is noticed where its answer is read
            self._input.write(line.to_json().encode() + b"\n")
            self._input.flush()

    def _fail(self) -> None:
        raise BenchError(f"a generator failed with exit status {self._process.wait()}; it said above why")


class Crew(contextlib.ExitStack):
    """Generator processes, which stay for one load after the other; gone on leaving."""

    def __init__(self) -> None:
        super().__init__()
        self._generators: list[Generator] = []

    def prepare(self, parts: Sequence[Load]) -> list[Generator]:
        """Return a generator for each part of a load, connected. Raises BenchError."""
        while len(self._generators) < len(parts):
            self._generators.append(self.enter_context(Generator.started()))
        generators = self._generators[: len(parts)]
        for generator, part in zip(generators, parts, strict=True):
            generator.prepare(part)
        for generator in generators:
            generator.await_ready()
        return generators


def run(
    load: Load,
    duration_s: float,
    *,
    warm_up_s: float = WARM_UP_S,
    generators: int = 1,
    server: int | Sequence[int] = (),
    crew: Crew | None = None,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Put a load on a server for `duration_s` after a warm-up, and watch its processes meanwhile.

    `progress` is given what was found so far, each second. A KeyboardInterrupt ends it early; a second one is raised.
    Raises BenchError if the load cannot begin, or if it is strict and anything is wrong.
    """
    pids = (server,) if isinstance(server, int) else server
    watch = Watch(*pids) if pids else None
    with contextlib.ExitStack() as stack:
        running = (crew or stack.enter_context(Crew())).prepare(load.parts(generators))
        if load.subscribers:
            warm_up_s = 0.0  # all has been warmed up, and comes to rest at both ends
        start = time.monotonic() + warm_up_s
        window = Window(start, start + duration_s)
        outcome = Outcome(load, warm_up_s, len(running))
        if watch:
            watch.begin()
        for generator in running:
            generator.work(window)
        gathering = Gathering(running, outcome, progress)
        try:
            if not load.subscribers:
                gathering.until(window.start)
                if watch:
                    watch.begin()
            gathering.until(window.stop)
        except KeyboardInterrupt:
            outcome.interrupted = True
            for generator in running:
                generator.stop()
        late = time.monotonic() + load.patience_s + GRACE_S
        if load.subscribers:
            gathering.until(late)
        if watch:
            outcome.server = watch.end()
            outcome.server_ended = outcome.server is None
        gathering.until(late)
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
