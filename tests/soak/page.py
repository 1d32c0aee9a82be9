"""What a soak found, as a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from skywalker.limits import MIB
from tests.soak.run import JUDGED_S, Found

MARK = {True: "✓", False: "✗"}


def lines(found: Found) -> Iterator[str]:
    """Yield the lines of the page."""
    roster = found.roster
    yield f"  {'program':<16}{'shifts':>7}{'killed':>8}  what it did"
    for program, shifts in sorted(roster.shifts.items()):
        counts = sorted((count, what) for (whose, what), count in roster.counts.items() if whose == program)
        most = ", ".join(f"{count:,} {what}" for count, what in reversed(counts[-5:]))
        yield f"  {program:<16}{shifts:>7}{roster.kills[program]:>8}  {most}"
    yield ""
    done = ", ".join(f"{count} {kind}" for kind, count in found.done.most_common()) or "nothing"
    yield f"  done to nodes   {done}; {found.restarts} workers were replaced for it"
    yield ""
    heads = ("1st quarter", "2nd", "last", "peak", "a hour", "allowed")
    yield f"  {'MiB of its own':<34}" + "".join(f"{head:>12}" for head in heads)
    for _, group in groupby(found.growths, lambda growth: growth.what.split(" ")[0]):
        yield ""
        for growth in group:
            sizes = (growth.first, growth.second, growth.last, growth.peak)
            row = "".join(f"{size / MIB:>12.2f}" for size in sizes)
            row += f"{growth.per_hour / MIB:>+12.2f}{growth.allowed / MIB:>+12.2f}"
            yield f"  {growth.what:<34}{row}  {MARK[growth.is_flat]}"
    yield ""
    for fault in found.faults:
        yield f"  ✗ {fault}"
    if not found.faults:
        memory = "memory, " if found.seconds >= JUDGED_S else ""
        yield f"  ✓ {memory}open files, threads and tables are what they were, and no answer was wrong"
    if found.seconds < JUDGED_S:
        yield f"  memory is judged from {JUDGED_S:.0f} s on"
