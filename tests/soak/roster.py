"""The programs that use the nodes: each for a shift, which ends by itself or by a kill, and then another begins."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.helpers import time_factor
from tests.soak.stage import Stage

END_S: Final = 40.0
"""Seconds for a program to end by itself: as long as the longest call that it finishes takes, and more."""

MEMBERS_KILLED: Final = 8
MOST_KILLS: Final = {"members": MEMBERS_KILLED}
"""How often in all. Members of Silk that failed are looked for for a day, which takes memory and a file for each."""

MOST_FAILURES: Final = 5
"""Of one program, until it is not run any more."""

LOOK_S: Final = 0.2


class Roster:
    """Runs each program in shifts, from a thread for each, for the length of a `with` block."""

    def __init__(
        self, stage: Stage, dice: random.Random, shift_s: tuple[float, float], killed: float, scratch: Path
    ) -> None:
        """`shift_s` are the shortest and the longest shift.

        At the end of one it is so likely that its program is killed; at most every other time, since that says nothing.
        """
        self.shifts: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failures: list[str] = []  # of programs, or what they found wrong
        self._stage = stage
        self._dice = dice
        self._likely = killed
        self._shift_s = shift_s
        self._scratch = scratch
        self._over = threading.Event()
        self._numbers = iter(range(1, sys.maxsize))
        self._lock = threading.Lock()
        self._begun = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._guarded, args=(each,), name=each) for each in programs(stage)]

    def __enter__(self) -> Roster:
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            self._begun.acquire()  # or time that is for use would be spent on loading
        return self

    def __exit__(self, *_: object) -> None:
        """End all shifts, and wait until that is so."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, program: str) -> None:
        for _ in range(MOST_FAILURES):
            try:
                # Two at least: the first says what it has seen, and some of the second are killed.
                while not self._over.is_set() or self.shifts[program] < 2:
                    self._run(program)
                return
            except Exception as error:
                self.failures.append(f"{program} failed: {error}")
                self._over.wait(1.0)

    def _run(self, program: str) -> None:
        with self._lock:
            number, seed = next(self._numbers), self._dice.randrange(10**9)
            length_s, may_be_killed = self._dice.uniform(*self._shift_s), self._dice.random() < self._likely
        errors = self._scratch / f"{program}-{number}.errors"
        module = f"tests.soak.programs.{program}"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                # It ends with this process, however that ends.
                ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", module, self._stage.text(), str(seed)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, process_group=0,
            )  # fmt: skip
        try:
            assert process.stdout is not None
            process.stdout.readline()  # the first is said once all is loaded, which takes long on a busy machine
            self._begun.release()
            start = time.monotonic()
            while process.poll() is None and time.monotonic() - start < length_s and not self._may_end(program):
                time.sleep(LOOK_S)
            is_killed = may_be_killed and process.poll() is None
            is_killed &= 2 * self.kills[program] < self.shifts[program]
            is_killed &= self.kills[program] < MOST_KILLS.get(program, math.inf)
            if is_killed:
                os.killpg(process.pid, signal.SIGKILL)
            end = time.monotonic()
            said, _ = process.communicate(timeout=END_S * time_factor())
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if not is_killed and (process.returncode or (not self._over.is_set() and end - start < length_s)):
            raise RuntimeError(f"it ended with status {process.returncode}: {errors.read_text()[-2000:]}")
        told = {"counts": {}, "faults": []} if is_killed else json.loads(said)
        with self._lock:
            self.shifts[program] += 1
            self.kills[program] += is_killed
            self.counts.update({(program, what): count for what, count in told["counts"].items()})
            self.failures += [f"{program}: {fault}" for fault in told["faults"]]
        errors.unlink()

    def _may_end(self, program: str) -> bool:
        """Whether all is over. One of whose program nothing is known yet has the time that it was to have."""
        return self._over.is_set() and self.shifts[program] > self.kills[program]


def programs(stage: Stage) -> list[str]:
    """Return the names of those that there are: the generator of loads speaks no TLS."""
    return [name for name in PROGRAMS if not (stage.authority and name == "volume")]


PROGRAMS: Final = ("visitors", "members", "watchers", "ruffians", "volume")
