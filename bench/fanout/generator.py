"""A process that publishes and listens: `python -m bench.fanout.generator`, started by bench.fanout.

It reads a Plan from standard input, connects, does what it says and writes a Tally, and so on until standard input
ends. What goes wrong it writes instead, after a word that no Tally begins with.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Final, cast

from bench.errors import BenchError
from bench.fanout.loop import measure
from bench.fanout.plan import Plan, Tally

FAILED: Final = "failed: "


class Generator:
    """Such a process, seen from the one that started it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._input, self._output = cast(IO[str], process.stdin), cast(IO[str], process.stdout)

    @classmethod
    @contextlib.contextmanager
    def started(cls) -> Iterator[Generator]:
        """Start one; it is gone on leaving."""
        with subprocess.Popen(
            [sys.executable, "-m", "bench.fanout.generator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # a Ctrl-C at the terminal is for us, who then end it
        ) as process:
            try:
                yield cls(process)
            finally:
                process.kill()

    def measure(self, plan: Plan) -> Tally:
        """Have it do what a plan says. Raises BenchError."""
        with contextlib.suppress(BrokenPipeError):  # it has ended, which is noticed where its answer is read
            self._input.write(plan.to_json() + "\n")
            self._input.flush()
        line = self._output.readline().rstrip("\n")
        if not line:
            raise BenchError(f"the generator ended with exit status {self._process.wait()}; it said above why")
        if line.startswith(FAILED):
            raise BenchError(line.removeprefix(FAILED))
        return Tally.from_json(line)


def main() -> int:
    """Do what standard input says; return the exit status."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.freeze()
    for line in sys.stdin:
        try:
            print(measure(Plan.from_json(line)).to_json(), flush=True)
        except BenchError as error:
            print(f"{FAILED}{error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
