"""One measurement: generators work on a plan while the CPU time of the server is read at both ends of a window."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO, Final, cast

from bench import cpu
from bench.errors import BenchError
from bench.plan import READY, Plan, Tally, Window

WARM_UP_S: Final = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """What one measurement found. A rendezvous is a recv! and a send!, both answered."""

    seconds: float
    rendezvous: int  # in the window
    sent: int  # from the first call to the last
    received: int
    rate: float  # rendezvous per second
    server_cores: float  # cores that all processes of the server kept busy
    generator_cores: float
    p50_us: float | None  # of the time that one rendezvous took, where that was measured
    p99_us: float | None
    forwarded: float | None = None  # the part of the calls that came to a worker that had to pass them on, if known

    @property
    def rate_per_core(self) -> float:
        """Rendezvous per second of CPU time of the server."""
        return self.rate / self.server_cores


class Generator:
    """A generator process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._input, self._output = cast(IO[str], process.stdin), cast(IO[str], process.stdout)

    @classmethod
    @contextlib.contextmanager
    def started(cls, plan: Plan) -> Iterator[Generator]:
        """Start one on a plan; it is gone on leaving."""
        with subprocess.Popen(
            [sys.executable, "-m", "bench.generator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # a Ctrl-C at the terminal is for us, who then end it
        ) as process:
            try:
                generator = cls(process)
                generator._say(plan.to_json())
                yield generator
            finally:
                process.kill()

    def await_ready(self) -> None:
        """Wait until it is connected. Raises BenchError if it cannot."""
        if self._hear() != READY:
            raise BenchError("a generator started in a way that this one does not know")

    def work(self, window: Window) -> None:
        """Have it begin."""
        self._say(window.to_json())

    def tally(self) -> Tally:
        """Wait for its end, and return what it counted. Raises BenchError if it failed."""
        return Tally.from_json(self._hear())

    def _say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has failed, which is noticed where its answer is read
            self._input.write(line + "\n")
            self._input.flush()

    def _hear(self) -> str:
        line = self._output.readline()
        if not line:
            raise BenchError(f"a generator failed with exit status {self._process.wait()}; it said above why")
        return line.rstrip("\n")


def measure(server: int, plan: Plan, duration_s: float, generators: int = 1, besides: Sequence[int] = ()) -> Sample:
    """Have `generators` processes share a plan for `duration_s` after a warm-up, and watch process `server`.

    What the processes `besides` take counts too, where several make one server. Raises BenchError.
    """
    generators = min(generators, plan.pairs)
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Generator.started(plan.share(part, generators))) for part in range(generators)]
        for generator in running:
            generator.await_ready()
        start = time.monotonic() + WARM_UP_S
        window = Window(start, start + duration_s)
        for generator in running:
            generator.work(window)
        began, used = _at(window.start, (server, *besides))
        ended, used_then = _at(window.stop, (server, *besides))
        tallies = [generator.tally() for generator in running]
    if used_then <= used:
        raise BenchError(f"process {server} took no CPU time in {duration_s:g} s: it is not what was measured")
    return _sample(tallies, (used_then - used) / (ended - began))


def _at(moment: float, servers: Sequence[int]) -> tuple[float, float]:
    """Return what the time really is, and the CPU time of the servers, when `moment` has come."""
    time.sleep(max(0.0, moment - time.monotonic()))
    return time.monotonic(), sum(map(cpu.seconds, servers))


def _sample(tallies: Sequence[Tally], server_cores: float) -> Sample:
    # A rendezvous at the edge of the window may have one of its replies on either side.
    counts = [min(tally.sent, tally.received) for tally in tallies]
    latencies = sorted(latency for tally in tallies for latency in tally.latencies_us)
    return Sample(
        seconds=max(tally.seconds for tally in tallies),
        rendezvous=sum(counts),
        sent=sum(tally.total_sent for tally in tallies),
        received=sum(tally.total_received for tally in tallies),
        rate=sum(count / tally.seconds for count, tally in zip(counts, tallies, strict=True)),
        server_cores=server_cores,
        generator_cores=sum(tally.cpu_s / tally.seconds for tally in tallies),
        p50_us=percentile(latencies, 50) if latencies else None,
        p99_us=percentile(latencies, 99) if latencies else None,
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest of the ordered numbers that at least `percent` of them do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
