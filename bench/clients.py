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
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, NamedTuple

import click

from bench import machine
from bench.client_programs import PROGRAMS, Order, Result
from bench.errors import BenchError
from bench.progress import measuring, show_progress
from bench.report import table
from bench.servers import SERVERS

WANTED: Final = 1.5
"""How many times the rendezvous per second of another client ours should make."""

PATIENCE_S: Final = 30.0


class Case(NamedTuple):
    """A style of program and the pairs that it keeps busy."""

    style: str
    pairs: int

    def __str__(self) -> str:
        return f"{self.style}, {self.pairs} pair{'s' if self.pairs > 1 else ''}"


CASES: Final = (Case("asyncio", 1), Case("asyncio", 64), Case("blocking", 1))

LIBRARIES: Final = {"skywalker": "skywalker", "nats-py": "nats", "redis-py": "redis"}
"""Which server each library is for."""


class Found:
    """What every run of every program counted."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.results: dict[tuple[Case, str], list[Result]] = {}

    def median(self, case: Case, library: str, figure: str) -> float:
        """Return the median of one figure, named as in Result."""
        found: list[float] = [getattr(result, figure) for result in self.results[case, library]]
        return statistics.median(found)

    def ratio(self, case: Case, library: str, figure: str) -> float:
        """Return ours as a multiple of another library's."""
        return self.median(case, "skywalker", figure) / self.median(case, library, figure)

    def lines(self) -> Iterator[str]:
        """Yield the settings and the table, line by line."""
        width = max(map(len, self.settings))
        for name, value in self.settings.items():
            yield f"{name:{width}}  {value}"
        yield ""
        heads = (
            "rendezvous/s",
            "per client core-second",
            "ours by the clock",
            "ours by CPU time",
            f"{WANTED} by the clock",
        )
        yield from table(("program", "library", *heads), [self._row(*key) for key in self.results])

    def _row(self, case: Case, library: str) -> tuple[str, ...]:
        rate, per_core = (self.ratio(case, library, figure) for figure in ("rate", "rate_per_core"))
        figures = (f"{self.median(case, library, figure):,.0f}" for figure in ("rate", "rate_per_core"))
        word = "" if library == "skywalker" else "reached" if rate >= WANTED else "NOT reached"
        return (str(case), library, *figures, f"{rate:.2f}", f"{per_core:.2f}", word)

    def to_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {"settings": self.settings, "cases": [self._case(*key) for key in self.results]}

    def _case(self, case: Case, library: str) -> dict[str, Any]:
        figures = ("rate", "rate_per_core")
        return {
            "style": case.style,
            "pairs": case.pairs,
            "library": library,
            **{figure: self.median(case, library, figure) for figure in figures},
            **{f"{figure}_ratio": self.ratio(case, library, figure) for figure in figures},
            "runs": [dataclasses.asdict(result) for result in self.results[case, library]],
        }


def compare(runs: int, seconds: float, progress: Callable[[str], None]) -> Found:
    """Run every program in every run. Raises BenchError, or SkywalkerError if a node does not start."""
    settings: dict[str, Any] = {}
    found = Found(settings)
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
                        found.results.setdefault((case, library), []).append(result)
    for library, name in LIBRARIES.items():
        version = importlib.metadata.version(library.replace("redis-py", "redis"))
        settings[library] = f"{version}, with {running[name].version}"
    settings |= machine.settings(runs, seconds)
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


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--runs", type=click.IntRange(1, 1000), default=5, help="Runs, of which medians are taken.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=2.0, help="Length of each measurement.")
@click.option("--quick", is_flag=True, help="One run of 0.3 seconds each: shows that it works, not how fast.")
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="Also write everything as JSON.")
def main(runs: int, seconds: float, quick: bool, json_file: IO[str] | None) -> None:
    """Compare the clients of skywalker, NATS and Redis: rendezvous per second, and per second of their own CPU time."""
    if quick:
        runs, seconds = 1, 0.3
    with measuring():
        found = compare(runs, seconds, show_progress)
    for line in found.lines():
        click.echo(line)
    if json_file is not None:
        json.dump(found.to_data(), json_file, indent=2)
        json_file.write("\n")


if __name__ == "__main__":
    main()
