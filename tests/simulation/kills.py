"""Workers killed under load, in the middle of a turn: nobody is told what is not so, and few that nobody knows.

    python -m tests.simulation.kills              # 1,000 kills
    python -m tests.simulation.kills --kills 100
    python -m tests.simulation.kills --only 4711  # that seed, and what happened to the calls that failed in it

Each kill comes after a few more writes of its worker, while the clients of a node have 50,000 rendezvous a second.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.__main__ import show
from tests.simulation.failure import failure_of
from tests.simulation.plan import ROOM, ClientPlan, Fault, Plan, Spurt, Word
from tests.simulation.safeguard import need_assertions

KILLS: Final = 20
"""In one run."""

EVERY_S: Final = 0.45
"""Seconds between two of them: what came of one has ended when the next one comes."""

RATE: Final = 50_000
"""Rendezvous a second, of one node."""

BEFORE_S: Final = 0.003
AFTER_S: Final = 0.002
"""Seconds for which clients speak before a kill, and after it."""

CLIENTS: Final = 32
AT_ONCE: Final = 16
"""Calls that each has under way at most."""

MEET: Final = 0.7
"""How many of them meet somebody: the others come when nobody waits, or lose their connection with the kill."""

WORDS: Final = int(2 * RATE * (BEFORE_S + AFTER_S) / CLIENTS / MEET)
"""That each client says at a kill: it sends or listens, and a rendezvous takes both."""

PAUSE_S: Final = (BEFORE_S + AFTER_S) / WORDS * AT_ONCE / 4
"""Seconds between two times that a client speaks: it says a few words at once."""

WORKERS: Final = (2, 3, 4)
"""Of the node: with three, those of a sender, of a listener and of the owner of their topic may all be others."""

AGAIN: Final = 0.3
"""How often another one is killed shortly after, of all times."""

AGAIN_S: Final = (0.0003, 0.002, 0.006)
"""Seconds after which that is, at most: what came of the first is still told, or its successor opens."""

TIMEOUTS_MS: Final = (5, 20, 50, 200)

MOST_UNKNOWN: Final = 5.0
"""Sends of which nobody knows, for each kill, on average."""


def plan_of(seed: int) -> Plan:
    """Return a run with so many kills."""
    luck = Random(seed)
    topics = [f"topic{n}" for n in range(luck.choice([4, 16, 64]))]
    times = [round(0.3 + EVERY_S * n + 0.05 * luck.random(), 6) for n in range(KILLS)]

    def words() -> tuple[Word, ...]:
        return tuple(
            Word(luck.choice([":send!", ":send!", ":recv!", ":take!"]), luck.choice(topics), luck.choice(TIMEOUTS_MS))
            for _ in range(WORDS)
        )

    clients = tuple(
        ClientPlan(
            "caller",
            number,
            PAUSE_S,
            AT_ONCE,
            ROOM,
            subscribes=False,
            acks=False,
            spurts=tuple(Spurt(at - BEFORE_S, words()) for at in times),
        )
        for number in range(CLIENTS)
    )
    times += [round(at + luck.choice(AGAIN_S) * luck.random(), 6) for at in times if luck.random() < AGAIN]
    faults = tuple(Fault(at, "kill in a step", "node0", luck.randrange(12)) for at in sorted(times))
    return Plan(seed, 1, luck.choice(WORKERS), len(topics), clients, faults)


@dataclass
class Sum:
    """What came of all of them."""

    kills: int = 0
    met: int = 0
    unknown: int = 0

    def __str__(self) -> str:
        each = self.unknown / max(1, self.kills)
        return f"{self.kills} kills, {self.met} rendezvous, {self.unknown} of which nobody knows, {each:.2f} a kill"


def tried(seed: int) -> tuple[int, Sum, list[str]]:
    """Run one plan; return what came of it, and what did not hold."""
    result, failure = failure_of(plan_of(seed))
    what = Sum() if result is None else Sum(result.kills, result.met, result.unknown)
    return seed, what, [] if failure is None else failure.lines


def main() -> int:
    """Kill as many as are wanted; return 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many workers are killed")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="of the first run")
    parser.add_argument("--only", type=int, help="run this seed alone, and tell what happened to what failed in it")
    options = parser.parse_args()
    need_assertions()
    if options.only is not None:
        return show(plan_of(options.only), everything=False)
    seeds = range(options.seed, options.seed + -(-options.kills // KILLS))
    total, wrong = Sum(), 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for seed, what, lines in pool.imap(tried, seeds):
            total = Sum(total.kills + what.kills, total.met + what.met, total.unknown + what.unknown)
            wrong += len(lines)
            for line in lines[:5]:
                print(f"seed {seed}: {line}", flush=True)
            if lines:
                print(f"    to see it: python -m tests.simulation.kills --only {seed}", flush=True)
    print(f"{total}; {wrong} did not hold")
    return int(wrong > 0 or total.unknown > MOST_UNKNOWN * total.kills)


if __name__ == "__main__":
    sys.exit(main())
