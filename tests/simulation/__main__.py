"""Runs seeds on all cores, and prints of each that fails what did not hold, and the command that shows it.

python -m tests.simulation --seeds 100        # fresh ones
python -m tests.simulation --minutes 10
python -m tests.simulation --seed 4711        # that one, and all that happens in it
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator

from tests.simulation.run import Result, run

AT_ONCE = 40
"""Seeds between two looks at the clock."""

SHOWN = 5
"""Lines of what did not hold in one run."""


def rounds(count: int | None, minutes: float | None) -> Iterator[list[int]]:
    """Yield fresh seeds, some at a time: so many in all, or until the time is over."""
    ends_at = time.monotonic() + 60 * (minutes or 0)
    luck, left = random.SystemRandom(), count
    while left != 0 if left is not None else time.monotonic() < ends_at:
        size = AT_ONCE if left is None else min(AT_ONCE, left)
        left = None if left is None else left - size
        yield [luck.getrandbits(32) for _ in range(size)]


def tried(seed: int) -> tuple[int, Result | str]:
    """Run one; what is no result is why there is none."""
    try:
        return seed, run(seed)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"


def main() -> int:
    """Run them; return 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and tell all that happens")
    parser.add_argument("--seeds", type=int, help="run so many fresh ones")
    parser.add_argument("--minutes", type=float, help="run fresh ones for so long")
    options = parser.parse_args()
    if options.seed is not None:
        result = run(options.seed, print)
        print(f"{result.calls} calls, {result.met} met, {result.published} published, trace {result.trace:08x}")
        print(*result.broken or ["all holds"], sep="\n")
        return int(bool(result.broken))
    count = options.seeds if options.seeds is not None or options.minutes is not None else 100
    began, seeds, failed, results = time.monotonic(), 0, 0, []
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for seed, found in (each for some in rounds(count, options.minutes) for each in pool.imap(tried, some)):
            seeds += 1
            if isinstance(found, str):
                wrong = [found]
            else:
                wrong = found.broken
                results.append(found)
            if wrong:
                failed += 1
                print(f"seed {seed}: {len(wrong)} did not hold", *wrong[:SHOWN], sep="\n    ")
                print(f"    to see it: {sys.executable} -m tests.simulation --seed {seed}", flush=True)
    took = time.monotonic() - began
    simulated, met = (sum(getattr(each, what) for each in results) for what in ("seconds", "met"))
    kills, unknown, in_doubt = (
        sum(getattr(each, what) for each in results) for what in ("kills", "unknown", "in_doubt")
    )
    print(f"{seeds} seeds, {failed} failed; {simulated:.0f} s simulated in {took:.0f} s, {met} rendezvous;")
    under_way = sum(each.under_way for each in results)
    print(f"{kills} kills, {under_way} calls under way when something happened;")
    print(f"{unknown} sends of which nobody knows, {in_doubt} senders told nobody came though somebody had their value")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
