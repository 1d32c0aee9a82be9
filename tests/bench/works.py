"""A load in this process, for whoever wants to see what it says when something is wrong."""

from __future__ import annotations

import time
from typing import NamedTuple

from bench.load.generator import Work
from bench.load.pairs import Pairs
from bench.load.plan import AFTER, Counts, Load, Window
from bench.load.publications import Publications


class Done(NamedTuple):
    """What was counted: in the window, and from the first call to the last."""

    counts: Counts
    sent: int
    received: int


def work(load: Load, seconds: float = 0.3) -> Done:
    """Do it, after a warm-up. Raises BenchError."""
    counts: list[Counts] = []
    with Work(load, counts.append) as doing:
        doing.workload.connect()
        start = time.monotonic() + 0.05
        doing.run(Window(start, start + seconds))
        return _done(counts, doing.workload)


def _done(counts: list[Counts], workload: Pairs | Publications) -> Done:
    whole = Counts(0)
    for each in counts:
        if each.second != AFTER:
            whole.add(each)
    whole.seconds = sum(each.seconds for each in counts)
    return Done(whole, workload.sent, workload.received)
