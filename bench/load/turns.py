"""How long turns of a worker's loop take: `python -m bench.load.turns HOST PORT PID`, started by Turns.

A connection asks with a :ping every 0.2 ms, and does not wait for the answers: all that was asked before a turn is
answered at its end. So what the worker does between two answers is a turn, or waiting. Its CPU time is what counts: a
turn in the middle of which the machine does something else is not longer for it. Where the machine lets this process
itself wait, answers of several turns may have come, and these do not count.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, cast

from bench.errors import BenchError
from bench.load.dial import READ_BYTES, contact
from bench.load.plan import Load
from bench.servers.usage import clock_of, tree
from skywalker.wire import junction as wire
from skywalker.wire import values

EVERY_S: Final = 0.0002

LATE_S: Final = 0.0005
"""After which it was the machine that let us wait."""

URGENT: Final = -10

_PING: Final = wire.frame(wire.PING, values.pack(1))


class Turns:
    """A process that watches one worker of a node; it is gone on leaving."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._input, self._output = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        self._read()

    @classmethod
    @contextlib.contextmanager
    def watched(cls, load: Load, pid: int) -> Iterator[Turns]:
        """Watch the node that a load is for, whose first process is `pid`. Raises BenchError if it can't."""
        with subprocess.Popen(
            [sys.executable, "-m", "bench.load.turns", load.host, str(load.port), str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        ) as process:
            try:
                yield cls(process)
            finally:
                process.kill()

    def longest_s(self) -> float:
        """Return the seconds of the longest turn since it was last asked. Raises BenchError."""
        with contextlib.suppress(BrokenPipeError):  # which is noticed where its answer is read
            self._input.write(b"\n")
            self._input.flush()
        return self._read()

    def _read(self) -> float:
        if not (line := self._output.readline()):
            raise BenchError("the turns of the worker could not be watched; it was said above why")
        return float(line)


def watch(load: Load, pid: int) -> None:
    """Tell the longest turn so far, once for the beginning and for each line of standard input, to its end.

    Raises BenchError.
    """
    link, greeting = contact(load)
    with contextlib.closing(link):
        if greeting is None:
            raise BenchError("the node does not say which worker answers")
        clock = _clock(pid, f"skywalker-{greeting.worker}")
        longest, last, is_late, due = 0.0, time.clock_gettime(clock), False, time.monotonic()
        print(longest, flush=True)
        while True:
            ready, _, _ = select.select([link, sys.stdin], [], [], max(0.0, due - time.monotonic()))
            spent = time.clock_gettime(clock)
            is_late |= time.monotonic() > due + LATE_S
            if link in ready:
                if not link.recv(READ_BYTES):
                    raise BenchError("the node closed the connection that watches it")
                if not is_late:
                    longest = max(longest, spent - last)
                last, is_late = spent, False
            if sys.stdin in ready:
                if not sys.stdin.readline():
                    return
                print(longest, flush=True)
                longest = 0.0
            if (now := time.monotonic()) >= due:
                is_late |= now > due + LATE_S
                with contextlib.suppress(BlockingIOError):  # there are enough that are not answered
                    link.send(_PING)
                due = now + EVERY_S


def _clock(pid: int, name: str) -> int:
    """Return the clock of the CPU time of a process of that name, `pid` or one below it."""
    for process in tree(pid):
        if process.name() == name:
            return clock_of(process.pid)
    raise BenchError(f"there is no process {name} of the node")


def main() -> int:
    """Do what it is started for; return the exit status."""
    with contextlib.suppress(OSError):
        Path("/proc/self/timerslack_ns").write_text("1")
        os.setpriority(os.PRIO_PROCESS, 0, URGENT)
    host, port, pid = sys.argv[1:]
    try:
        watch(Load(host, int(port)), int(pid))
    except (BenchError, OSError) as error:
        print(f"turns: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
