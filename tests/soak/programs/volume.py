"""The generator of bench.load at a steady rate: so many calls that what each leaves behind shows, be it a few bytes."""

from __future__ import annotations

import random
from typing import Final

from bench.errors import BenchError
from bench.load.plan import WRONG, Load
from bench.load.run import run
from tests.soak.programs.shift import Shift
from tests.soak.stage import split

RATE: Final = 500.0
"""Rendezvous a second: an eighth of what a core can do here at most, so that the machine has time for all else."""

RUN_S: Final = 3.0
"""Seconds of a run."""


def main() -> None:
    """Put the load on one node after the other, until the input ends."""
    shift = Shift()
    shift.watch()
    dice = random.Random(shift.seed)
    number = 0
    while not shift.over.is_set():
        number += 1
        host, port = split(dice.choice(shift.stage.places).address)
        load = Load(
            host, port, f"volume-{shift.seed}-{number}", pairs=4, in_flight=dice.choice((1, 8, 64)), rate=RATE,
            value_bytes=dice.choice((16, 1000, 20_000)), direct=dice.random() < 0.5, timeout_s=30.0,
        )  # fmt: skip
        try:
            outcome = run(load, RUN_S)
        except BenchError:
            shift.counts["runs that could not begin"] += 1  # its worker was just killed
            continue
        shift.counts["rendezvous"] += outcome.total.sent
        shift.counts.update({f"calls {code}": count for code, count in outcome.errors.items()})
        if count := outcome.errors.get(WRONG):
            shift.complain(f"{count} calls of a load ended as {WRONG}: {outcome.total.example}")
    shift.end()


if __name__ == "__main__":
    main()
