"""Connections that move from worker to worker all the time, while workers are killed, stopped and replaced.

    python -m tests.simulation.moves                  # until there were 10,000 moves
    python -m tests.simulation.moves --moves 1000000
    python -m tests.simulation.moves --only 4711  # that seed, and what happened to the calls that failed in it

Clients are in pairs that have one topic after the other to themselves, and follow each to the worker that owns it, some
with subscriptions and with values that they have yet to acknowledge. Others publish to one topic after the other.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import multiprocessing
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.simulation.__main__ import show
from tests.simulation.failure import failure_of
from tests.simulation.plan import (
    FAULTS,
    NODE,
    PUBLISH,
    ROOM,
    SPEAK_S,
    WORKERS,
    ClientPlan,
    Fault,
    Plan,
    Spurt,
    Word,
    plan,
)
from tests.simulation.safeguard import need_assertions

PAIRS: Final = 12
PHASES: Final = 150
"""How often a pair goes on to its next topic."""

PUBLISHERS: Final = 3
TALKS: Final = 60
"""How often one of them publishes to a topic for a while."""

SUBSCRIBED: Final = (0, 1, 3)
"""Topics that they publish to, and that some of all subscribe to."""

TOPICS: Final = 4
"""Of a pair, one after the other: few, so that a pair of which one has lost its place soon meets again."""

METHODS: Final = (*2 * ((":send!", ":take!"), (":take!", ":send!")), (":send!", ":recv!"))
"""Of the two of a pair: where a value goes to all who listen, one of them soon waits in vain."""

DEPTHS: Final = (1, 1, 1, 1, 2, 4, 16)
"""Calls that one has under way at most, and says at least of a topic."""

TIMEOUTS_MS: Final = (5, 5, 20, 20, 20, 50, 50, 100, 200, 1000)
"""Few are long: who waits in vain holds up its pair."""

LATE_S: Final = 0.003
"""Seconds by which one of a pair may be later than the other, who has moved by then."""

NEAR_S: Final = 0.05
"""Seconds before a fault in which half of what happens begins."""

DEATHS: Final = ("kill", "kill in a step", "kill at a point", "kill at a point")
KINDS: Final = (*DEATHS, "stop at a point", "stop", "reload", "no descriptors")
"""Faults that may come in the middle of a move."""

TOGETHER_S: Final = (1e-5, 1e-3)
"""Seconds within which another worker of a node may be killed after one."""

POINTS: Final = (
    "a connection is offered",
    "a connection is adopted",
    "a connection is handed over",
    "a connection has arrived",
    "a link has ended",
    "a batch is written",
    "a value is written",
)
"""Where that is."""


def plan_of(seed: int) -> Plan:
    """Return a run in which connections move hundreds of times."""
    luck = Random(seed)
    made = plan(seed)
    times = sorted(round(0.1 + luck.random() * SPEAK_S, 6) for _ in range(2 * FAULTS))
    nodes = luck.choice([1, 1, 1, 2])
    workers = luck.choice(WORKERS[: 4 - nodes])
    some = luck.choice([DEATHS, luck.sample(KINDS, luck.randint(1, 2))])
    faults = []
    for at in times:
        kind = luck.choice(some)
        point = luck.choice(POINTS) if kind.endswith("at a point") else ""
        seconds = round(luck.random() * luck.choice([0.02, 0.2, 1.0]), 6)
        faults.append(Fault(at, kind, f"{NODE}{luck.randrange(nodes)}", luck.randrange(12), seconds, point))
        if kind in DEATHS and luck.random() < 0.3:
            soon = round(at + luck.choice(TOGETHER_S) * luck.random(), 6)
            faults.append(dataclasses.replace(faults[-1], at=soon, kind="kill", nth=faults[-1].nth + 1))
    conditions = dataclasses.replace(made.conditions, drawn_after=luck.choice([1, 1, 2, 8]), tokens="even")
    topics = luck.choice(SUBSCRIBED)
    clients = [client for pair in range(PAIRS) for client in _pair(luck, pair, times, topics)]
    clients += [_publisher(luck, number, times, topics) for number in range(PUBLISHERS if topics else 0)]
    return Plan(seed, nodes, workers, topics, tuple(clients), tuple(faults), conditions, made.way)


def _publisher(luck: Random, number: int, faults: list[float], topics: int) -> ClientPlan:
    """Return one that publishes to topic after topic, and subscribes to all of them or to none."""
    depth, topic, said = luck.choice(DEPTHS), f"topic{luck.randrange(topics)}", []
    for at in sorted(_time(luck, faults) for _ in range(TALKS)):
        topic = f"topic{luck.randrange(topics)}" if luck.random() < 0.3 else topic
        said.append(Spurt(at, (Word(PUBLISH, topic),) * luck.randint(1, 3 * depth)))
    return ClientPlan("pubsub", number, 0.0, depth, ROOM, luck.random() < 0.6, False, tuple(said))


def _pair(luck: Random, pair: int, faults: list[float], topics: int) -> Iterator[ClientPlan]:
    """Yield two who go from topic to topic, half of the time at a fault; those that say much of each have fewer."""
    depth = luck.choice(DEPTHS)
    lates_s = luck.choice([(0.0, 0.0), (0.0, LATE_S), (LATE_S, 0.0)])
    spurts: tuple[list[Spurt], list[Spurt]] = [], []
    for number, at in enumerate(sorted(_time(luck, faults) for _ in range(4 * PHASES // (3 + depth)))):
        topic, words = f"pair{pair}.{number % TOPICS}", depth + luck.randrange(2)
        methods = luck.choice(METHODS)
        for said, method, late_s in zip(spurts, methods, lates_s, strict=True):
            said.append(Spurt(round(at + late_s, 6), tuple(_word(luck, method, topic) for _ in range(words))))
    for side, said in enumerate(spurts):
        pause_s, room = luck.choice([0.0, 0.0, 0.001]), luck.choice([ROOM, ROOM, ROOM, 30])
        subscribes, acks = topics > 0 and luck.random() < 0.3, luck.random() < 0.2
        yield ClientPlan("pair", 2 * pair + side, pause_s, depth, room, subscribes, acks, tuple(said))


def _time(luck: Random, faults: list[float]) -> float:
    at = luck.random() * SPEAK_S
    return round(max(0.0, luck.choice(faults) - NEAR_S * luck.random()) if luck.random() < 0.5 else at, 6)


def _word(luck: Random, method: str, topic: str) -> Word:
    return Word(method, topic, luck.choice(TIMEOUTS_MS), cancels=luck.random() < 0.02)


@dataclass
class Sum:
    """What came of all of them."""

    seeds: int = 0
    moves: int = 0
    met: int = 0
    kills: int = 0

    def add(self, other: Sum) -> None:
        """Take in another."""
        self.seeds, self.moves = self.seeds + other.seeds, self.moves + other.moves
        self.met, self.kills = self.met + other.met, self.kills + other.kills

    def __str__(self) -> str:
        return f"{self.seeds} seeds, {self.moves} moves, {self.met} rendezvous, {self.kills} kills"


def tried(seed: int) -> tuple[int, Sum, list[str]]:
    """Run one plan; return what came of it, and what did not hold."""
    result, failure = failure_of(plan_of(seed))
    what = Sum(1) if result is None else Sum(1, result.moves, result.met, result.kills)
    return seed, what, [] if failure is None else failure.lines


def main() -> int:
    """Have as many as are wanted; return 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.moves", description=__doc__)
    parser.add_argument("--moves", type=int, default=10_000, help="how many connections move")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="of the first run")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="that are used at most")
    parser.add_argument("--only", type=int, help="run this seed alone, and tell what happened to what failed in it")
    options = parser.parse_args()
    need_assertions()
    if options.only is not None:
        return show(plan_of(options.only), everything=False)
    total, wrong, at_once = Sum(), 0, 8 * options.cores
    with multiprocessing.Pool(options.cores) as pool:
        for seeds in (range(first, first + at_once) for first in itertools.count(options.seed, at_once)):
            for seed, what, lines in pool.imap(tried, seeds):
                total.add(what)
                wrong += len(lines)
                for line in lines[:5]:
                    print(f"seed {seed}: {line}", flush=True)
                if lines:
                    print(f"    to see it: python -m tests.simulation.moves --only {seed}", flush=True)
            if total.moves >= options.moves:
                break
    print(f"{total}; {wrong} did not hold; the next is --seed {seeds.stop}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
