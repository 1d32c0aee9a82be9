"""One run of Silk: a cluster of its nodes, what happens to it, and the judgement.

python -m tests.simulation.silk_run --seeds 100        # fresh ones
python -m tests.simulation.silk_run --minutes 10
python -m tests.simulation.silk_run --seed 4711        # that one, and all that happens in it
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import zmq

from skywalker.wire.silk import INTERNAL
from tests.simulation.__main__ import SHOWN, rounds
from tests.simulation.kernel import BEGIN, NEVER, Kernel, Listener
from tests.simulation.silk_cluster import Cluster
from tests.simulation.silk_rules import broken
from tests.simulation.zeromq import LATE, LOST, TWICE, Frames

NODES: Final = (2, 3, 4, 5, 6)
ROUNDS: Final = 3
FAULTS: Final = 4
"""In each round."""

KINDS: Final = ("kill", "kill in a step", "power", "stop", "leave", "part", "cut", "half open")
"""What a fault may be. A run has some of them."""

FOR_EVER: Final = 0.2
"""Part of those that die or leave and do not come back."""

ASTRAY: Final = 0.3
STRAYS: Final = 0.05
"""Part of the runs in which direct messages are lost, of those in which messages of membership come twice, and of those
in which some are overtaken by later ones; and part of the messages that are."""

LASTS_S: Final = (0.2, 2.0, 8.0)
"""Seconds for which one stands still, is away or is parted from others, at most."""

BEGIN_S: Final = 2.0
TROUBLE_S: Final = 10.0
CALM_S: Final = 15.0
"""Seconds for nodes to start, for things to happen, and for all to be well again after the last of these is over."""


@dataclass
class Result:
    """What came of it."""

    sayings: int
    answered: int
    failures: int
    """How often somebody was given up."""
    trace: int
    """A hash of all that happened."""
    seconds: float
    """That went by."""
    broken: list[str]


class Teller:
    """Prints what happens."""

    def note(self, at: float, who: str, what: str) -> None:
        print(f"{at - BEGIN:.6f} {who} {what}")

    def wrote(self, *_: Any) -> None:
        """Nothing is written by what this would be told of."""


def _happen(cluster: Cluster, luck: Random, kind: str) -> None:
    """Do one of KINDS to some of them."""
    members = cluster.live()
    if not members:
        return
    member, lasts_s = luck.choice(members), luck.random() * luck.choice(LASTS_S)
    back_s = NEVER if luck.random() < FOR_EVER else lasts_s
    if kind == "kill":
        cluster.kill(member, back_s)
    elif kind == "kill in a step":
        member.task.kill_after(luck.randint(1, 6))
        cluster.kernel.at(cluster.kernel.now + PERIODS_S, lambda: cluster.kill(member, back_s))
    elif kind == "power":
        cluster.lose_power(member, lasts_s)
    elif kind == "stop":
        cluster.stop(member, lasts_s)
    elif kind == "leave":
        member.leave(back_s)
    elif kind == "cut":
        cluster.cut(member)
    elif kind == "half open":
        cluster.lose_link(luck.sample([*cluster.members], 2), lasts_s)
    else:
        hosts = luck.sample([*cluster.members], len(cluster.members))
        some = luck.randint(1, len(hosts) - 1)
        others = hosts[some:] if luck.random() < 0.5 else hosts[some : some + 1]
        cluster.part(hosts[:some], others, lasts_s, both_ways=luck.random() < 0.7)


PERIODS_S: Final = 2.0
"""Seconds in which one that is to be killed in a step says something for sure."""


def run(seed: int, listener: Listener | None = None) -> Result:
    """Run one seed."""
    kernel = Kernel(seed, listener)
    began, luck, cluster = kernel.now, kernel.luck, Cluster(kernel)
    hosts = [f"10.0.0.{number}" for number in range(1, 1 + luck.choice(NODES))]
    for number, host in enumerate(hosts):
        seeds = luck.sample(hosts[:number], luck.randint(1, number)) if number else []
        routers = [f"tcp://{seed}:3444" for seed in seeds]
        kernel.at(kernel.now + luck.random() * BEGIN_S, lambda host=host, routers=routers: cluster.start(host, routers))
    kernel.go_on(BEGIN_S)
    kinds = luck.sample(KINDS, luck.randint(1, 3))
    fates = [fate for fate in (LOST, TWICE, LATE) if luck.random() < ASTRAY]
    cluster.history.is_lossy = LOST in fates

    def fate(kind: int, frames: Frames) -> str:
        found = luck.choice(fates) if fates and luck.random() < STRAYS else ""
        is_kept = found == LOST and kind != zmq.DEALER
        is_alone = found == TWICE and not json.loads(frames[-1])["type"].startswith(INTERNAL)  # as it is of a program
        return "" if is_kept or is_alone else found

    cluster.zeromq.fate = fate
    for _ in range(ROUNDS):
        for _ in range(FAULTS):
            at = kernel.now + luck.random() * TROUBLE_S
            kernel.at(at, lambda: _happen(cluster, luck, luck.choice(kinds)))
        kernel.go_on(TROUBLE_S + PERIODS_S + max(LASTS_S) + CALM_S)
        cluster.check()
    cluster.close()
    history = cluster.history
    return Result(
        len(history.sayings),
        sum(bool(each.replies) for each in history.sayings),
        sum(what == "Failed" for life in history.lives for _, what, _ in life.events),
        kernel.trace,
        kernel.now - began,
        broken(history),
    )


def tried(seed: int) -> tuple[int, Result | str]:
    """Run one; what is no result is why there is none."""
    try:
        return seed, run(seed)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"


def main() -> int:
    """Run them; return 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.silk_run", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and tell all that happens")
    parser.add_argument("--seeds", type=int, help="run so many fresh ones")
    parser.add_argument("--minutes", type=float, help="run fresh ones for so long")
    options = parser.parse_args()
    if options.seed is not None:
        result = run(options.seed, Teller())
        print(f"{result.sayings} sayings, {result.answered} answered, trace {result.trace:08x}")
        print(*result.broken or ["all holds"], sep="\n")
        return int(bool(result.broken))
    count = options.seeds if options.seeds is not None or options.minutes is not None else 100
    began, failed, results, seeds = time.monotonic(), 0, [], 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for seed, found in (each for some in rounds(count, options.minutes) for each in pool.imap(tried, some)):
            seeds += 1
            wrong = [found] if isinstance(found, str) else found.broken
            if not isinstance(found, str):
                results.append(found)
            if wrong:
                failed += 1
                print(f"seed {seed}: {len(wrong)} did not hold", *wrong[:SHOWN], sep="\n    ")
                print(f"    to see it: {sys.executable} -m tests.simulation.silk_run --seed {seed}", flush=True)
    took = time.monotonic() - began
    simulated, sayings, answered, failures = (
        sum(getattr(each, what) for each in results) for what in ("seconds", "sayings", "answered", "failures")
    )
    print(f"Silk: {seeds} seeds, {failed} failed; {simulated:.0f} s simulated in {took:.0f} s;")
    print(f"{sayings} sayings, {answered} answered; {failures} times one was given up")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
