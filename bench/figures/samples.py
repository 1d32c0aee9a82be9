"""What a benchmark found: its samples, their medians over its runs, and how servers are measured in turn."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import statistics
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from bench.errors import BenchError
from bench.figures import machine
from bench.load.outcome import Outcome
from bench.load.plan import Load
from bench.load.run import WARM_UP_S, Crew, run
from bench.servers.peer import Running

Case = TypeVar("Case", bound=Hashable)
Server = TypeVar("Server", bound=Hashable)


class Mode(enum.StrEnum):
    """In which way calls are made."""

    CLOSED_LOOP = "closed-loop"  # every lane always has a recv! and a send! in flight; what counts is the rate
    QUEUE = "job-queue"  # the same, and each pair has one topic, of which its receiver takes
    LOCKSTEP = "lockstep"  # one rendezvous at a time, the pairs in turn; what counts is the time it takes


class Shape(NamedTuple):
    """How many pairs of connections, and how many calls each connection has in flight."""

    pairs: int
    in_flight: int

    def __str__(self) -> str:
        return f"{self.pairs} pair{'s' if self.pairs > 1 else ''} x {self.in_flight}"


SHAPES = {f"{shape.pairs}x{shape.in_flight}": shape for shape in map(Shape, (1, 8, 32, 256), (64, 64, 1, 1))}
"""Those that are measured if none are asked for."""

VALUE_BYTES = 16

LONGEST_S = 10.0
"""A time that is long enough to see any server work in, whatever else the machine does."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """What one measurement found. A rendezvous is a recv! and a send!, both answered, or else a delivery."""

    seconds: float
    rendezvous: int  # in the window
    sent: int  # from its beginning to the last call
    received: int
    rate: float  # rendezvous per second
    server_cores: float  # cores that all processes of the server kept busy
    generator_cores: float
    p50_us: float | None  # of the time that one took, where that was measured
    p99_us: float | None
    forwarded: float | None = None  # the part of the calls that came to a worker that had to pass them on, if known

    @property
    def rate_per_core(self) -> float:
        """Rendezvous per second of CPU time of the server."""
        return self.rate / self.server_cores


def measure(
    load: Load,
    seconds: float,
    server: int | Sequence[int],
    *,
    generators: int = 1,
    crew: Crew | None = None,
    warm_up_s: float = WARM_UP_S,
    progress: Callable[[Outcome], None] = lambda _: None,
) -> Sample:
    """Put a load on a server, and watch its processes. Raises BenchError if anything is wrong.

    On a machine with much else to do a server may have no processor in all of a short time: it is given twice the time
    then, as often as need be, since that says nothing of the server.
    """
    while True:
        outcome = run(
            load,
            seconds,
            warm_up_s=warm_up_s,
            generators=generators,
            server=server,
            crew=crew,
            progress=progress,
        )
        if not outcome.errors and _is_idle(outcome) and seconds < LONGEST_S:
            seconds *= 2
        else:
            return sample_of(outcome)


def _is_idle(outcome: Outcome) -> bool:
    """Whether a server that is there was not seen to do anything."""
    return outcome.server is not None and not (outcome.rate and outcome.server.cores)


def sample_of(outcome: Outcome) -> Sample:
    """Return what a load found as one sample. Raises BenchError if anything failed, or the server ended."""
    if outcome.interrupted:
        raise KeyboardInterrupt
    if outcome.errors or outcome.server is None or not outcome.rate:
        what = ", ".join(f"{count} {code}" for code, count in outcome.errors.items())
        what = what or ("the server ended" if outcome.server is None else "nothing was answered")
        raise BenchError(f"the load did not go well: {what}")
    if not outcome.server.cores:
        raise BenchError(f"the server took no CPU time in {outcome.seconds:g} s: it is not what was measured")
    return Sample(
        seconds=outcome.seconds,
        rendezvous=outcome.rendezvous,
        sent=outcome.total.sent,
        received=outcome.total.received,
        rate=outcome.rate,
        server_cores=outcome.server_cores,
        generator_cores=outcome.generator_cores,
        p50_us=outcome.percentile_us(50),
        p99_us=outcome.percentile_us(99),
        forwarded=outcome.forwarded,
    )


class Samples(Generic[Case, Server]):
    """The samples of every server in every case, and on what they depend besides."""

    def __init__(self, settings: dict[str, Any] | None = None, servers: Sequence[Server] = ()) -> None:
        """`servers` have their order in the tables, whoever is measured first."""
        self.settings = {} if settings is None else settings
        self._order = servers
        self.samples: dict[tuple[Case, Server], list[Any]] = {}

    def add(self, case: Case, server: Server, sample: object) -> None:
        """Take in what one run found."""
        self.samples.setdefault((case, server), []).append(sample)

    def cases(self) -> list[Case]:
        """Return the cases that were measured, in their order."""
        return list(dict.fromkeys(case for case, _ in self.samples))

    def servers(self) -> list[Server]:
        """Return the servers that were measured, in their order."""
        return list(dict.fromkeys((*self._order, *(server for _, server in self.samples))))

    def median(self, case: Case, server: Server, figure: str) -> float | None:
        """Return the median of one figure of the samples, by its name; None where it was not measured."""
        found = [getattr(sample, figure) for sample in self.samples.get((case, server), ())]
        return statistics.median(found) if found and found[0] is not None else None

    def ratio(self, case: Case, server: Server, other: Server, figure: str = "rate_per_core") -> float | None:
        """Return the median of a server as a multiple of another one's; None where there is nothing to compare."""
        ours, theirs = self.median(case, server, figure), self.median(case, other, figure)
        return ours / theirs if ours and theirs else None

    def ratio_by_run(self, case: Case, server: Server, other: Server, figure: str = "rate_per_core") -> float:
        """Return the median of what a server is of another one in the same run."""
        pairs = zip(self.samples[case, server], self.samples[case, other], strict=True)
        ratios: list[float] = [getattr(one, figure) / getattr(base, figure) for one, base in pairs]
        return statistics.median(ratios)

    def settings_lines(self) -> Iterator[str]:
        """Yield the settings, line by line."""
        width = max(map(len, self.settings))
        for name, value in self.settings.items():
            yield f"{name:{width}}  {', '.join(map(str, value)) if isinstance(value, list) else value}"

    def runs(self, case: Case, server: Server) -> list[dict[str, Any]]:
        """Return every sample as JSON has it."""
        found = self.samples[case, server]
        return [dataclasses.asdict(sample) | {"rate_per_core": sample.rate_per_core} for sample in found]


def figure(number: float | None, form: str = ",.0f") -> str:
    """Return a figure as tables show it."""
    return "-" if number is None else format(number, form)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield an aligned table: columns of numbers to the right, others to the left."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [not "".join(column[1:]).strip("-0123456789,.%") for column in columns]
    for row in (head, *rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> Iterator[str]:
    """Yield a table of a page: so many columns of words to the left, those of numbers to the right."""
    yield _row(head)
    yield f"|{'---|' * words}{'---:|' * (len(head) - words)}"
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def measure_in_turn(
    found: Samples[Case, str],
    servers: Mapping[str, Callable[[], contextlib.AbstractContextManager[Running]]],
    cases: Iterable[Case],
    load_of: Callable[[str, Running, Case], Load | None],
    runs: int,
    seconds: float,
    progress: Callable[[str], None],
) -> None:
    """Measure every case on every server in every run; `progress` is told in a few words what comes next.

    There is no load for what a server cannot do. Raises BenchError, or SkywalkerError if a node does not start.
    """
    for number in range(1, runs + 1):
        with contextlib.ExitStack() as stack:
            running = {name: stack.enter_context(started()) for name, started in servers.items()}
            crew = stack.enter_context(Crew())
            for case in cases:
                for name, server in running.items():
                    load = load_of(name, server, case)
                    if load is None:
                        continue
                    progress(f"run {number} of {runs}: {name}, {case}")
                    try:
                        found.add(case, name, measure(load, seconds, server.pid, crew=crew))
                    except BenchError as error:
                        raise BenchError(f"{name}, {case}: {error}") from error
            found.settings |= {name: server.version for name, server in running.items()}
    found.settings |= machine.settings(runs, seconds)
