"""Safeguards of the product, each of which can be switched off: a run that does not notice would not test it.

    python -m tests.simulation.ablations                 # a table of all of them
    python -m tests.simulation.ablations "opening barrier"

It takes what has a plain form plain (tests/plain.py), since what is compiled cannot be changed.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
from typing import Final, NamedTuple

from skywalker import build
from tests.simulation import safeguards, silk_safeguards
from tests.simulation.safeguard import Safeguard

SEEDS: Final = 500
"""That are tried before it is said that nobody notices."""

SAFEGUARDS: Final[dict[str, Safeguard]] = {**safeguards.SAFEGUARDS, **silk_safeguards.SAFEGUARDS}
"""By what each does."""


class Noticed(NamedTuple):
    """After how many seeds it was noticed that a safeguard is off, and what was said; how many are 0 if it was not."""

    seeds: int
    line: str


def noticed(name: str, seeds: int = SEEDS) -> Noticed:
    """Try so many seeds without a safeguard, at most. What does not hold with it, either, does not count."""
    safeguard = SAFEGUARDS[name]
    for seed in range(seeds):
        with safeguard.off():
            lines = safeguard.broken(seed)
        if lines and not safeguard.broken(seed):
            return Noticed(seed + 1, lines[0])
    return Noticed(0, f"not noticed by {seeds} seeds")


def main() -> int:
    """Try those that are named, or all, on all cores; return 1 if one is not noticed."""
    if build.COMPILED:
        os.execv(sys.executable, [sys.executable, "-m", "tests.plain", "tests.simulation.ablations", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.ablations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="safeguard", choices=[[], *SAFEGUARDS])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="that are tried at most")
    options = parser.parse_args()
    names = options.names or [*SAFEGUARDS]
    width, missed = max(map(len, names)), 0
    print(f"{'without this safeguard':{width}}  seeds  what is noticed")
    with multiprocessing.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        for name, (seeds, line) in zip(
            names, pool.imap(functools.partial(noticed, seeds=options.seeds), names, chunksize=1), strict=True
        ):
            missed += not seeds
            print(f"{name:{width}}  {seeds or '-':>5}  {line}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
