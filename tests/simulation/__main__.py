"""Runs seeds on all cores. Of each that fails it prints what did not hold, and the command that runs it again; of the
first of each kind also the smallest part of its plan that fails in the same way, and what happened in that.

python -m tests.simulation --seeds 100        # fresh ones
python -m tests.simulation --minutes 10
python -m tests.simulation --seed 4711        # that one, and what happened to the calls that failed in it
python -m tests.simulation --seed 4711 --all  # a line for all that happened in it
python -m tests.simulation --plan '{"seed":4711,...}'
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator

from tests.simulation.failure import Failure, failure_of, shrunk
from tests.simulation.plan import Plan, plan
from tests.simulation.run import Result
from tests.simulation.safeguard import need_assertions
from tests.simulation.story import Story
from workers.engine.points import POINTS

AT_ONCE = 10
"""Seeds between two looks at the clock."""

SHOWN = 5
"""Lines of what did not hold in one run."""

SHRUNK = 4
"""Failures that are shrunk, each of another kind."""

ENOUGH = 200
"""Seeds in which all points of the program are to be reached."""


def rounds(count: int | None, minutes: float | None) -> Iterator[list[int]]:
    """Yield fresh seeds, some at a time: so many in all, or until the time is over."""
    ends_at = time.monotonic() + 60 * (minutes or 0)
    luck, left = random.SystemRandom(), count
    while left != 0 if left is not None else time.monotonic() < ends_at:
        size = AT_ONCE if left is None else min(AT_ONCE, left)
        left = None if left is None else left - size
        yield [luck.getrandbits(32) for _ in range(size)]


def tried(seed: int) -> tuple[int, Result | None, Failure | None]:
    """Run one; there is no result where it came to no end."""
    return (seed, *failure_of(plan(seed)))


def show(what: Plan, everything: bool) -> int:
    """Run a plan, and print what happened in it; return 1 if something did not hold."""
    story = Story()
    result, failure = failure_of(what, story)
    if everything:
        print(*story.lines, sep="\n")
    elif failure is not None:
        print(*story.about(failure.lines), sep="\n")
    if result is not None:
        counts = f"{result.calls} calls, {result.met} met, {result.published} published, {result.moves} moved"
        print(f"{counts}, trace {result.trace:08x}")
    print(*failure.lines if failure is not None else ["all holds"], sep="\n")
    return int(failure is not None)


def many(count: int | None, minutes: float | None) -> int:
    """Run fresh seeds; return 1 if something did not hold."""
    began, results, failed = time.monotonic(), [], 0
    kinds: dict[frozenset[str], int] = {}
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for seed, result, failure in (each for some in rounds(count, minutes) for each in pool.imap(tried, some)):
            if result is not None:
                results.append(result)
            if failure is not None:
                failed += 1
                kinds.setdefault(failure.kinds, seed)
                print(f"seed {seed}: {len(failure.lines)} did not hold", *failure.lines[:SHOWN], sep="\n    ")
                print(f"    to see it: make simulate SEED={seed}", flush=True)
        took = time.monotonic() - began
        for text in pool.imap(shrunk, [*kinds.values()][:SHRUNK]):
            print(text, flush=True)
    simulated, met, moves, kills, unknown, under_way = (
        sum(getattr(each, what) for each in results)
        for what in ("seconds", "met", "moves", "kills", "unknown", "under_way")
    )
    print(f"{len(results)} seeds, {failed} failed; {simulated:.0f} s simulated in {took:.0f} s, {met} rendezvous;")
    print(f"{moves} connections moved from worker to worker;")
    print(f"{kills} kills, {under_way} calls under way when something happened, {unknown} sends of which nobody knows")
    missed = [point for point in POINTS if not any(each.points.get(point) for each in results)]
    if len(results) >= ENOUGH and missed:
        print(f"nobody came to a point where {', or where '.join(missed)}")
    return int(failed > 0 or (len(results) >= ENOUGH and bool(missed)))


def main() -> int:
    """Do what is asked for; return 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and tell what happened to what failed in it")
    parser.add_argument("--plan", type=Plan.of, help="run this plan, a line of the corpus, in the same way")
    parser.add_argument("--all", action="store_true", help="tell all that happens in it")
    parser.add_argument("--seeds", type=int, help="run so many fresh ones")
    parser.add_argument("--minutes", type=float, help="run fresh ones for so long")
    options = parser.parse_args()
    need_assertions()
    if options.plan is not None or options.seed is not None:
        return show(options.plan or plan(options.seed), options.all)
    return many(options.seeds if options.seeds is not None or options.minutes is not None else 100, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
