"""A process that makes the calls of one part of a load: `python -m bench.load.generator`, started by bench.load.run.

It reads a Load from standard input, connects, answers READY, reads a Window, works, and writes
Counts, a line for each second. It ends with the window, or early when standard input says or
ends; what was counted until then is told in any case.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import sys
from pathlib import Path

from bench.errors import BenchError
from bench.load.counts import Counts
from bench.load.loop import Loop
from bench.load.plan import Load
from bench.plan import READY, Window


def main() -> int:
    """Do what standard input says; return the exit status."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The kernel wakes us 50 us late, to save power, unless told otherwise: calls that are due would be late as much.
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")
    line = sys.stdin.readline()
    if not line:
        return 0  # whoever started this is gone
    loop = Loop(Load.from_json(line), _write)
    with contextlib.closing(loop):
        try:
            loop.connect()
        except BenchError as error:
            print(f"generator: {error}", file=sys.stderr)
            return 1
        print(READY, flush=True)
        line = sys.stdin.readline()
        if line:
            gc.freeze()  # a collection that goes through every lane takes milliseconds
            loop.run(Window.from_json(line))
    return 0


def _write(counts: Counts) -> None:
    print(counts.to_json(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
