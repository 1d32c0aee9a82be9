"""A process that makes the calls of its parts of loads: `python -m bench.load.generator`, started by bench.load.run.

It reads a Load from standard input, connects, answers READY, reads a Window, works, and writes Counts, a line for each
second; then it may be given the next. It ends when standard input does, early where that is in the middle of a window;
what was counted until then is told in any case.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import sys
from pathlib import Path
from typing import Final

from bench.errors import BenchError
from bench.load.counts import Counts
from bench.load.plan import Load, Window
from bench.load.work import Work

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
