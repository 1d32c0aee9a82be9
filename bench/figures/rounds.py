"""The same cases on one server after the other, so that what slows the machine down for a while falls on all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from bench.errors import BenchError
from bench.figures import machine
from bench.figures.samples import Case, Samples, measure
from bench.load.plan import Load
from bench.load.run import Crew
from bench.servers.peer import Running


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
    for run in range(1, runs + 1):
        with contextlib.ExitStack() as stack:
            running = {name: stack.enter_context(started()) for name, started in servers.items()}
            crew = stack.enter_context(Crew())
            for case in cases:
                for name, server in running.items():
                    load = load_of(name, server, case)
                    if load is None:
                        continue
                    progress(f"run {run} of {runs}: {name}, {case}")
                    try:
                        found.add(case, name, measure(load, seconds, server.pid, crew=crew))
                    except BenchError as error:
                        raise BenchError(f"{name}, {case}: {error}") from error
            found.settings |= {name: server.version for name, server in running.items()}
    found.settings |= machine.settings(runs, seconds)
