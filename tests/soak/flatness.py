"""Whether what the nodes take stays what it was: memory over the second half, files and tables once nobody is there."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from skywalker.limits import MIB
from tests.soak.gauge import Sample
from tests.soak.roster import MEMBERS_KILLED

PLATEAU_BYTES: Final = 2 * MIB
PLATEAU_PART: Final = 0.05
"""How much more memory may be in use in the last quarter than in the second. Python takes it from the kernel in
arenas, and keeps one as long as a single object lives in it, so a process that does the same for ever goes on to take
one more, ever more seldom. Between the two medians lies half of the time: at the 1,500 calls a second that a soak
makes, 10 minutes have 450,000 calls in it, and 2 MiB are 5 bytes for each. No object is so small."""

POOL: Final = min(32, (os.cpu_count() or 1) + 4)
"""Threads that an agent may have more: those of asyncio's pool come one by one, as they are needed."""

LOOKED_FOR: Final = 4 * MEMBERS_KILLED
"""Files that an agent may have more: for members that were killed, four in each program."""

WHOLE: Final = 0.95
"""Of the time from the second quarter on that a process must have lived to be judged by itself."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The memory of a process, of all that had a role in turn, or of a node; medians of quarters, in bytes."""

    what: str
    first: float
    second: float
    last: float
    peak: float
    seconds: float  # from the middle of the second quarter to that of the last

    @property
    def allowed(self) -> float:
        """How much more the last may be than the second."""
        return PLATEAU_BYTES + PLATEAU_PART * self.second

    @property
    def is_flat(self) -> bool:
        """Whether it grew no more."""
        return self.last - self.second <= self.allowed

    @property
    def per_hour(self) -> float:
        """By how many bytes it would grow in an hour, if that went on."""
        return (self.last - self.second) / self.seconds * 3600

    def __str__(self) -> str:
        return (
            f"{self.what} has grown from {self.second / MIB:.1f} to {self.last / MIB:.1f} MiB in {self.seconds:.0f} s, "
            f"allowed are {self.allowed / MIB:.1f} MiB more"
        )


def growths(samples: Sequence[Sample]) -> Iterator[Growth]:
    """Yield what there is to judge: each node, each role in it, and each process that was there nearly all the time."""
    start, end = samples[0].at, samples[-1].at
    quarters = [min(3, int(4 * (sample.at - start) / (end - start))) for sample in samples]
    series: dict[str, list[tuple[int, float]]] = defaultdict(list)
    births: dict[str, tuple[float, float]] = {}
    for sample, quarter in zip(samples, quarters, strict=True):
        nodes: dict[str, float] = defaultdict(float)
        for (node, role), size in sample.own_bytes().items():
            series[f"{node} {role}"].append((quarter, size))
            nodes[node] += size
        for node, total in nodes.items():
            series[node].append((quarter, total))
        for usage in sample.usages:
            what = f"{usage.node} {usage.role}, pid {usage.pid}"
            series[what].append((quarter, usage.own_bytes))
            births[what] = births.get(what, (sample.at, 0.0))[0], sample.at
    second = start + (end - start) / 4
    for what, points in sorted(series.items()):
        born, gone = births.get(what, (start, end))
        if min(gone, end) - max(born, second) < WHOLE * (end - second):
            continue
        first, before, last = (
            statistics.median([size for at, size in points if at == quarter] or [0.0]) for quarter in (0, 1, 3)
        )
        yield Growth(what, first, before, last, max(size for _, size in points), (end - start) / 2)


def left_over(before: Sample, after: Sample) -> list[str]:
    """Return, in words, what is left in tables, and who has more files or threads than in the first quiet moment."""
    found = after.left_over(before)
    for what, now, then in (
        ("files open", after.files(), before.files()),
        ("threads", after.threads(), before.threads()),
    ):
        for (node, role), count in now.items():
            spare = (POOL if what == "threads" else LOOKED_FOR) if role == "agent" else 0
            if count > then.get((node, role), 0) + spare:
                found.append(f"{node} {role}: {count} {what}, {then.get((node, role), 0)} in the first quiet moment")
    return found
