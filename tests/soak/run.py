"""One soak: a first quiet moment, a long time of use and trouble, a last quiet moment; and what was found."""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from skywalker.limits import MIB
from tests.helpers import time_factor
from tests.soak import flatness
from tests.soak.flatness import Growth
from tests.soak.gauge import Gauge, Sample
from tests.soak.roster import Roster
from tests.soak.stage import ROTATED, WORKERS, Nodes, nodes, touch
from tests.soak.trouble import Trouble

REHEARSAL: Final = 0.1
"""Part of the time in which all is used before the first quiet moment: what is opened or imported but once is then."""

REHEARSALS_S: Final = (4.0, 30.0)


class Pace(NamedTuple):
    """How soon one thing follows another, in seconds; where there are two, the shortest and the longest time."""

    shifts: tuple[float, float]
    pauses: tuple[float, float]  # between two deeds: sometimes one is hardly over, or a worker has time to fill up
    samples: float
    killed: float  # how likely a program is killed at the end of its shift


PACE: Final = Pace((3.0, 30.0), (0.5, 8.0), 1.0, 0.3)
SHORT_PACE: Final = Pace((2.0, 4.0), (0.1, 0.5), 0.25, 0.6)
SHORT_S: Final = 60.0
"""Seconds below which a soak has the second, so that all that there is happens in it."""

SAMPLES: Final = 1000
"""How many are taken in all, but no more than one a second."""

QUIET_S: Final = 45.0
"""Seconds for nodes to forget their clients: those that died without a word are noticed by what is tight in `stage`."""

JUDGED_S: Final = 240.0
"""Seconds from which on memory is judged: until then it grows to what so much use takes."""

LOOK_S: Final = 2.0
"""Between two looks, which have to show the same before it is the first quiet moment."""

MOST_JOURNAL_BYTES: Final = ROTATED["journal_keep"] + 6 * WORKERS * MIB
"""What is kept, and what each worker, and a predecessor that has just ended, writes until it looks at all files again:
twice the size of a file, and a page."""

BAD_EVENTS: Final = ("bug", "worker-hung", "agent-hung", "worker-deaf", "agent-deaf", "no-descriptor", "cannot-fork")


@dataclass
class Found:
    """What a soak found. `faults` is what must not be."""

    seconds: float
    samples: list[Sample]
    growths: list[Growth]
    roster: Roster
    done: Counter[str]
    restarts: int
    faults: list[str] = field(default_factory=list)


def soak(
    seconds: float,
    count: int,
    seed: int,
    *,
    tls: bool = False,
    logs: Path | None = None,
    say: Callable[[str], None] = lambda words: None,
) -> Found:
    """Run `count` nodes for so long, and some seconds more; put what they logged below `logs`, if given.

    Raises AssertionError or SkywalkerError if they do not begin.
    """
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="skywalker-soak-") as name:
        scratch = Path(name)
        with nodes(count, scratch, tls=tls) as found:
            return _Soak(found, scratch, dice, seconds, say).run(logs)


class _Soak:
    def __init__(
        self, found: Nodes, scratch: Path, dice: random.Random, seconds: float, say: Callable[[str], None]
    ) -> None:
        self._nodes = found
        self._scratch = scratch
        self._dice = dice
        self._seconds = seconds
        self._say = say
        self._pace = SHORT_PACE if seconds < SHORT_S else PACE
        self._gauge = Gauge(found.stage, max(self._pace.samples, seconds / SAMPLES))
        self._trouble = Trouble(found, self._some_dice(), self._pace.pauses)

    def run(self, logs: Path | None) -> Found:
        gauge, trouble = self._gauge, self._trouble
        self._use(max(REHEARSALS_S[0], min(REHEARSALS_S[1], REHEARSAL * self._seconds)))
        before, faults = self._quiet()
        with gauge, trouble:
            roster = self._use(self._seconds)
        self._say("until all is quiet")
        faults += self._quiet(before)[1]
        growths = [*flatness.growths(gauge.samples)]
        if self._seconds >= JUDGED_S:
            faults += [str(growth) for growth in growths if not growth.is_flat]
        faults += [*roster.failures, *trouble.failures]
        restarts = sum(len(re.findall(r"event=worker-ended\b", node.log)) for node in self._nodes.running)
        faults += self._ended(logs)
        return Found(self._seconds, gauge.samples, growths, roster, trouble.done, restarts, faults)

    def _use(self, seconds: float) -> Roster:
        until = time.monotonic() + seconds
        with Roster(
            self._nodes.stage, self._some_dice(), self._pace.shifts, self._pace.killed, self._scratch
        ) as roster:
            while (left := until - time.monotonic()) > 0:
                self._say(f"{left:.0f} s to go, {len(roster.failures)} failures")
                time.sleep(min(1.0, left))
        return roster

    def _quiet(self, before: Sample | None = None) -> tuple[Sample, list[str]]:
        """Wait until nodes that nobody uses are as at `before`, and all links between workers are there.

        Returns how they are in the end, and in words what is left over.
        """
        touch(self._nodes)
        deadline = time.monotonic() + QUIET_S * time_factor()
        last = self._gauge.look()
        while True:
            time.sleep(LOOK_S)
            now = self._gauge.look()
            # The first time there is nothing to compare with: files, too, have to come to rest.
            left = flatness.left_over(before or last, now)
            if not left or time.monotonic() > deadline:
                return now, left
            last = now

    def _ended(self, logs: Path | None) -> Iterator[str]:
        """End the nodes; yield what is wrong with how they end, and with what they leave behind."""
        for place, node in zip(self._nodes.stage.places, self._nodes.running, strict=True):
            yield from (f"{place.name} has logged: {line}" for line in mistakes(node.log, self._trouble.ended))
            if status := node.stop():
                yield f"{place.name} ended with status {status}"
            if logs is not None:
                logs.mkdir(parents=True, exist_ok=True)
                (logs / f"{place.name}.log").write_text(node.log)
            # The names of topics do not count.
            files = [*(self._scratch / place.name).glob("journal/*")]
            kept = sum(file.stat().st_size for file in files if file.suffix != ".names")
            if kept > MOST_JOURNAL_BYTES:
                yield f"{place.name} has kept a journal of {kept / MIB:.1f} MiB"

    def _some_dice(self) -> random.Random:
        return random.Random(self._dice.random())


def mistakes(log: str, ended: Container[int]) -> Iterator[str]:
    """Yield the lines of a node's log that should not be: bugs, and ends of processes other than those in `ended`."""
    for line in log.splitlines():
        event, pid = re.search(r"\bevent=(\S+)", line), re.search(r"\bpid=(\d+)", line)
        name = event[1] if event else ""
        is_end = name in ("worker-ended", "agent-ended")
        if name in BAD_EVENTS or "Traceback" in line or (is_end and not (pid and int(pid[1]) in ended)):
            yield line
