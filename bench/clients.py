"""The clients of skywalker beside nats-py and redis-py, each with its own server: `python -m bench.clients`.

A rendezvous is a value that one side sends and another receives, both answered. A program is one process that has
both sides, each a client used as its documentation says: tasks that share it, or, blocking, one thread. NATS has no
blocking client. With Redis nothing keeps a sender from running ahead of its receiver, and so it is with every user's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from bench.client_programs import PROGRAMS, Order, Result
from bench.errors import BenchError
from bench.figures import machine
from bench.figures.command import Findings, command, show_progress
from bench.figures.samples import Samples, figure, table
from bench.servers import SERVERS

WANTED: Final = 1.5
"""How many times the rendezvous per second of another client ours should make."""

PATIENCE_S: Final = 30.0

OURS: Final = "skywalker"
FIGURES: Final = ("rate", "rate_per_core")


class Case(NamedTuple):
    """A style of program and the pairs that it keeps busy."""

    style: str
    pairs: int

    def __str__(self) -> str:
        return f"{self.style}, {self.pairs} pair{'s' if self.pairs > 1 else ''}"


CASES: Final = (Case("asyncio", 1), Case("asyncio", 64), Case("blocking", 1))

LIBRARIES: Final = {"skywalker": "skywalker", "nats-py": "nats", "redis-py": "redis"}
"""Which server each library is for."""


class Found(Samples[Case, str]):
    """What every run of every program counted."""

    def lines(self) -> Iterator[str]:
        """Yield the settings and the table, line by line."""
        yield from self.settings_lines()
        yield ""
        heads = (
            "rendezvous/s",
            "per client core-second",
            "ours by the clock",
            "ours by CPU time",
            f"{WANTED} by the clock",
        )
        yield from table(("program", "library", *heads), [self._row(*key) for key in self.samples])

    def _row(self, case: Case, library: str) -> tuple[str, ...]:
        ratios = [self.ratio(case, OURS, library, name) or 0.0 for name in FIGURES]
        figures = (figure(self.median(case, library, name)) for name in FIGURES)
        word = "" if library == OURS else "reached" if ratios[0] >= WANTED else "NOT reached"
        return (str(case), library, *figures, *(f"{ratio:.2f}" for ratio in ratios), word)

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {"settings": self.settings, "cases": [self._case(*key) for key in self.samples]}

    def _case(self, case: Case, library: str) -> dict[str, Any]:
        return {
            **case._asdict(),
            "library": library,
            **{name: self.median(case, library, name) for name in FIGURES},
            **{f"{name}_ratio": self.ratio(case, OURS, library, name) for name in FIGURES},
            "runs": [dataclasses.asdict(result) for result in self.samples[case, library]],
        }


def compare(runs: int, seconds: float, progress: Callable[[str], None]) -> Found:
    """Run every program in every run. Raises BenchError, or SkywalkerError if a node does not start."""
    found = Found()
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(SERVERS[name].started()) for name in LIBRARIES.values()}
        for run in range(1, runs + 1):
            for case in CASES:
                for library, name in LIBRARIES.items():
                    program = f"{library} {case.style}"
                    if program in PROGRAMS:
                        progress(f"run {run} of {runs}: {library}, {case}")
                        server = running[name]
                        result = _ran(program, Order(server.host, server.port, case.pairs, seconds))
                        found.add(case, library, result)
    for library, name in LIBRARIES.items():
        version = importlib.metadata.version(library.replace("redis-py", "redis"))
        found.settings[library] = f"{version}, with {running[name].version}"
    found.settings |= machine.settings(runs, seconds)
    return found


def _ran(program: str, order: Order) -> Result:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bench.client_programs", program],
            input=json.dumps(dataclasses.asdict(order)) + "\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=order.seconds + PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{program} hangs: it did not end {PATIENCE_S:g} s after its time") from error
    if done.returncode:
        raise BenchError(f"{program} failed:\n{done.stderr.strip()}")
    return Result(**json.loads(done.stdout))


@command(runs=5, seconds=2.0, quick=0.3, json=True)
def main(runs: int, seconds: float) -> Findings:
    """Compare the clients of skywalker, NATS and Redis: rendezvous per second, and per second of their own CPU time."""
    found = compare(runs, seconds, show_progress)
    return Findings(found.lines(), found.to_data())


if __name__ == "__main__":
    main()
