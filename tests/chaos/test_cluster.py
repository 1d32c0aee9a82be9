"""A cluster whose nodes are killed, drained, joined, frozen and cut off at random, while pairs keep meeting.

SKYWALKER_CHAOS_SECONDS says for how long, SKYWALKER_CHAOS_SEED with which mixture.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from tests import history
from tests.chaos.agreement import Agreement, undisturbed
from tests.chaos.client import Dial
from tests.chaos.crowd import TIMEOUTS_MS, Crowd, Guest
from tests.chaos.fate import Fate
from tests.chaos.pairs import TIMEOUTS_S, Pair
from tests.chaos.routed_pairs import RoutedPairs, RoutedVerdict
from tests.chaos.verdict import Verdict
from tests.cluster import network
from tests.cluster.clusters import SETTLE_S, Cluster
from tests.cluster.network import Loopback, Machine, Network
from tests.cluster.ways import find_by
from tests.helpers import time_factor

NODES = {"list": 5, "silk": 3}
"""By how they find each other."""

PAIRS = 120
ROUTED_PAIRS = {"aio": 60, "blocking": 20}
GUESTS = 40
SECONDS = float(os.environ.get("SKYWALKER_CHAOS_SECONDS", "20"))

PATIENCE_S = 0.5
"""Seconds after its time that a client gives a node to have the last word on a call."""

FAR_S = 0.3
"""Seconds, at most, that the last word on a call may take from another node."""

LAST_MEETINGS_S = max(TIMEOUTS_S) + 2.0
"""Seconds for who still waits to meet once nothing happens any more: a call to a node that was cut off
takes all of its time, and only then another node is asked."""

TOLERANCE_S = FAR_S + 0.25 * time_factor()
"""Seconds after its time in which a call must be answered: all nodes and clients share the cores of one machine."""


class PatientGuest(Guest):
    """One that also waits for longer than it takes to agree."""

    timeouts_ms = (*TIMEOUTS_MS, 4000)


@pytest.mark.timeout(SECONDS * 3 + 240)
@pytest.mark.parametrize("way", NODES)
def test_pairs_keep_meeting_whatever_becomes_of_the_nodes(way: str) -> None:
    count = NODES[way]
    seed = int(os.environ.get("SKYWALKER_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"\nSKYWALKER_CHAOS_SEED={seed} SKYWALKER_CHAOS_SECONDS={SECONDS:g}")
    with contextlib.ExitStack() as stack:
        net: Network | None = None
        machines: Sequence[Machine] = [Loopback()] * (count + 1)
        if why := network.obstacle():
            print(f"nobody is cut off: {why}")
        else:
            net = stack.enter_context(Network(count + 1))
            machines = net.hosts
        cluster = stack.enter_context(Cluster(count, machines=machines[:count], drain_timeout_s=1.0))
        find_by(way, cluster, stack)
        cluster.start()
        crowd = Crowd(a_dial(cluster, random.Random(seed)), random.Random(seed + 1))
        pairs = [Pair(crowd, number) for number in range(PAIRS)]
        for pair in pairs:
            crowd.clients += [pair.sender, pair.listener]
            crowd.at(time.monotonic() + crowd.random.random(), pair.begin)
        crowd.clients += [PatientGuest(crowd, 2 * PAIRS + number) for number in range(GUESTS)]
        where = cluster.discovery.where
        routed = [
            stack.enter_context(RoutedPairs(kind, where, pairs_of_kind, seed, machines[count]))
            for kind, pairs_of_kind in ROUTED_PAIRS.items()
        ]
        fate = Fate(cluster, random.Random(seed + 2), net)
        stack.callback(fate.close)
        fate.start()
        crowd.run(SECONDS)
        fate.stop()
        stopped = time.monotonic()
        while not fate.is_done:
            crowd.run_on(0.1)
        # Who still waits may meet, now that nothing happens any more.
        crowd.run_on(LAST_MEETINGS_S)
        for each in routed:
            each.stop()
        crowd.finish(max(TIMEOUTS_S) + 2 * time_factor())
        late_s = crowd.slowest_turn_s  # as everybody may have been: the machine had something else to do
        results = [each.result() for each in routed]
        fate.close()
        logs = {node.name: node.log for node in cluster.nodes}

    agreement = Agreement(fate.events, fate.calms)
    alone = frozenset(pair.topic for pair in pairs)
    verdict = Verdict(crowd.calls, crowd.connections, agreement, TOLERANCE_S + late_s, alone)
    broken = [*crowd.complaints, *verdict.broken(), *agreement.quarrels(SETTLE_S * time_factor() + late_s)]
    lonely = [pair.topic for pair in pairs if not pair.needed or (pair.meeting and pair.began < stopped)]
    broken += [f"{topic} never met, though all nodes agreed" for topic in lonely]
    broken += [f"{name} has logged a bug:\n{log}" for name, log in logs.items() if "Traceback" in log]
    broken += map(repr, fate.troubles)
    needed = [seconds for pair in pairs for seconds, _ in pair.needed]
    print(f"{dict(Counter(event.kind for event in fate.events))}")
    print(f"all agreed for {agreement.seconds:.1f} s, again after {agreement.longest_quarrel_s:.2f} s at the latest")
    print(f"at any node: {figures(call.recorded() for call in crowd.calls)}, {len(crowd.connections)} connections")
    print(f"  {len(needed)} meetings, the longest of them {max(needed):.2f} s, {verdict.duplicates} values twice")
    print(f"  excused: {counted(verdict.excused)}; slowest turn of the clients {late_s * 1000:.0f} ms")
    calms_of_clients = Agreement(fate.events, undisturbed(fate.events, fate.calms), heal_s=math.inf)
    for each in results:
        routed_verdict = RoutedVerdict(each.history, calms_of_clients, TOLERANCE_S + PATIENCE_S + late_s)
        broken += routed_verdict.broken()
        print(f"routed, {each.kind}: {figures(each.history.calls)}")
        print(f"  {each.meetings} meetings, the longest of them {each.longest_s:.2f} s")
        print(f"  {routed_verdict.duplicates} values twice; excused: {counted(routed_verdict.excused)}")
    if broken:
        kinds = Counter(text.split("\n")[0][:60] for text in broken)
        pytest.fail(f"{dict(kinds)}\n\n" + "\n\n".join(broken[:5]), pytrace=False)
    assert {event.kind for event in fate.events} >= fate.kinds


def a_dial(cluster: Cluster, dice: random.Random) -> Dial:
    """Return what connects a client to a node that lives, on that node's own machine."""

    def dial() -> tuple[socket.socket, str]:
        node = dice.choice(cluster.live)
        with node.machine.inside():
            return socket.create_connection((node.machine.address, node.port), 5), node.name

    return dial


def figures(calls: Iterable[history.Call]) -> str:
    """Return how many calls there were, and how they ended."""
    outcomes = Counter(call.code or str(call.outcome) for call in calls)
    return f"{outcomes.total()} calls: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.most_common())}"


def counted(excused: Counter[history.Rule]) -> str:
    return ", ".join(f"{count} {rule.name}" for rule, count in excused.items()) or "nothing"
