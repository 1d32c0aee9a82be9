"""Many clients, random topics, and a node that is reloaded under them, time and again: nobody notices."""

from __future__ import annotations

import math
import os
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Final

import pytest

from skywalker.ring import Ring, token_of
from skywalker.wire import values
from tests.chaos.client import Call
from tests.chaos.crowd import TIMEOUTS_MS, Crowd, Guest
from tests.chaos.disturbance import BOOT_S, Death, Disturbance
from tests.chaos.judge import Judge, Violation
from tests.chaos.starvation import Starvation
from tests.helpers import eventually, time_factor
from tests.history import check
from tests.workers.processes import Node, node
from workers.calls.call import GRACE_S
from workers.ipc import exits

CLIENTS: Final = 40
SECONDS: Final = 5.0

DRAIN_S: Final = 10.0
"""Seconds in which each client has made a call, heard that its worker drains, and had its other answers."""


WITHIN_S: Final = 0.1
"""Seconds that an answer may come late, and that two may wait side by side; 50 ms are promised."""

HOPS: Final = 3
"""Workers that may be kept waiting for a core, one after the other, until a call is answered: the caller's, its topic's
owner, and the caller's again."""

TOLD_WITHIN_S: Final = 1.0
"""Seconds for a call to be told to go elsewhere; those that wait would do so for longer."""


class Reloader:
    """Has a node reloaded, each time soon after the last one is done; may kill a worker meanwhile."""

    def __init__(
        self, running: Node, dice: random.Random, at: Callable[[float, Callable[[], None]], None], kills: bool
    ) -> None:
        self.killed: list[tuple[int, float]] = []
        self._running = running
        self._dice = dice
        self._at = at
        self._kills = kills
        self._active = True

    def start(self) -> None:
        """Begin, soon."""
        self._at(time.monotonic() + 0.3, self._reload)
        if self._kills:
            self._at(time.monotonic() + 0.5, self._kill)

    def stop(self) -> None:
        """Do nothing more."""
        self._active = False

    def _reload(self) -> None:
        if self._active:
            self._running.signal(signal.SIGHUP)
            self._at(time.monotonic() + self._dice.uniform(0.1, 0.8), self._reload)

    def _kill(self) -> None:
        if self._active:
            pids = [pid for pid in self._running.workers() if pid not in {pid for pid, _ in self.killed}]
            if pids:
                victim = self._dice.choice(pids)
                self.killed.append((victim, time.monotonic()))
                os.kill(victim, signal.SIGKILL)
            self._at(time.monotonic() + self._dice.uniform(0.3, 1.2), self._kill)


def seeded() -> int:
    """Return what the mixture of a run is drawn from, and say it."""
    seed = int(os.environ.get("SKYWALKER_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"SKYWALKER_CHAOS_SEED={seed}")
    return seed


def run_crowd(running: Node, seed: int, kills: bool) -> tuple[Crowd, Reloader, float]:
    """Have a crowd act while the node is reloaded; return what became of that once all is answered.

    The last is the longest time, in seconds, for which a worker waited for a core.
    """
    crowd = Crowd(lambda: (socket.create_connection(("127.0.0.1", running.port), 5), ""), random.Random(seed))
    crowd.clients += [Guest(crowd, number) for number in range(CLIENTS)]
    reloader = Reloader(running, random.Random(seed + 1), crowd.at, kills)
    reloader.start()
    starvation = Starvation(running, crowd.at)
    starvation.look()
    crowd.run(SECONDS)
    reloader.stop()
    crowd.finish(max(TIMEOUTS_MS) / 1000 + (exits.MAX_DELAY_S if kills else 0.0) + 3 * time_factor())
    return crowd, reloader, starvation.longest_s


def judged(
    crowd: Crowd, running: Node, starved_s: float, disturbances: list[Disturbance], deaths: list[Death]
) -> list[str]:
    """Return what was broken of the promises, in words."""
    with running.connect() as client:
        ring = Ring(client.greeting["tokens"])
    waits_s = WITHIN_S * time_factor() + HOPS * starved_s
    judge = Judge(
        crowd.calls, crowd.connections, disturbances, deaths,
        owner=lambda topic: ring.owner(token_of(values.pack(topic))),
        tolerance_s=waits_s + crowd.slowest_turn_s,
        missed_s=waits_s,
    )  # fmt: skip
    known: dict[str, Call] = {call.label: call for call in crowd.calls}
    broken = [
        *judge.violations(),
        *(
            Violation(each.rule.name, each.rule, [known[call.id] for call in each.calls])
            for each in check(judge.history(), tolerance=judge.tolerance_s, missed_after=math.inf)
        ),
    ]
    outcomes = Counter((call.kind, call.outcome) for call in crowd.calls)
    happened = f"{len(running.events('reloaded'))} reloads, {len(deaths)} deaths"
    print(f"{len(crowd.calls)} calls: {dict(outcomes)}, {len(crowd.connections)} connections")
    print(f"{judge.unknown} sends unknown, {happened}, a worker waited {starved_s:.3f} s for a core")
    print(f"broken: {dict(Counter(each.rule for each in broken))}")
    # All of this would hold of a node that does nothing, too.
    sent = sum(count for (kind, _), count in outcomes.items() if kind == "send")
    assert outcomes["send", "met"] > 0.3 * sent
    # An owner that gets a core in time has its last word in time, unless it is killed.
    assert judge.unknown <= (0.1 * sent if starved_s > GRACE_S / 2 or deaths else 0)
    return [*crowd.complaints, *(judge.explain(each) for each in broken)]


def assert_kept(broken: list[str]) -> None:
    if broken:
        pytest.fail(f"{len(broken)} promises broken\n\n" + "\n\n".join(broken[:5]), pytrace=False)


def deaths_in(running: Node) -> list[Death]:
    to_monotonic = time.monotonic() - time.time()
    return [
        Death(
            int(fields["worker"]), int(fields["pid"]),
            datetime.fromisoformat(fields["time"]).timestamp() + to_monotonic,
            0.0 if fields["restart_s"] == "None" else float(fields["restart_s"]),
        )
        for fields in running.events("worker-ended")
    ]  # fmt: skip


def refused_draining(calls: list[Call]) -> list[Call]:
    return [call for call in calls if call.outcome == "draining"]


@pytest.mark.parametrize("workers", [1, 4])
def test_no_call_is_lost_doubled_or_refused_elsewhere_while_a_node_is_reloaded(workers: int) -> None:
    with node(workers=workers, drain_timeout_s=DRAIN_S) as running:
        crowd, _, starved_s = run_crowd(running, seeded(), kills=False)
        eventually(lambda: running.events("reloaded"), DRAIN_S + 5)
        assert not [each for each in crowd.connections if each.lost is not None and not each.by_us], "connections lost"
        told = refused_draining(crowd.calls)
        assert told, "nobody had to go elsewhere"
        # Who calls at a worker that is replaced is told at once to go elsewhere; a call that waits is never.
        late = max((call.end or math.inf) - call.start for call in told)
        assert late <= TOLD_WITHIN_S * time_factor() + crowd.slowest_turn_s
        # All else is held against them as if nothing had ever been done to the node.
        crowd.calls = [call for call in crowd.calls if call.outcome != "draining"]
        assert_kept(judged(crowd, running, starved_s, [], []))
        assert not running.events("worker-ended")
        assert "Traceback" not in running.log()


def test_a_death_during_a_reload_costs_the_connections_of_that_worker_alone() -> None:
    with node(workers=4, drain_timeout_s=DRAIN_S) as running:
        crowd, reloader, starved_s = run_crowd(running, seeded(), kills=True)
        eventually(lambda: len(running.events("worker-ended")) >= len(reloader.killed))
        deaths = {death.pid: death for death in deaths_in(running)}
        assert deaths.keys() <= {pid for pid, _ in reloader.killed}
        disturbances = [
            Disturbance("killed", pid, at, death.at + death.restart_s + BOOT_S, death.slot)
            for pid, at in reloader.killed
            if (death := deaths.get(pid)) is not None
        ]
        crowd.calls = [call for call in crowd.calls if call.outcome != "draining"]
        assert_kept(judged(crowd, running, starved_s, disturbances, [*deaths.values()]))
        assert "Traceback" not in running.log()
