"""Many clients, random topics, and workers that are killed, stopped and drained: the promises hold all the same.

SKYWALKER_CHAOS_SECONDS says for how long, SKYWALKER_CHAOS_SEED with which mixture; both are printed by a failure.
"""

from __future__ import annotations

import math
import os
import random
import socket
from collections import Counter

import pytest

from skywalker.ring import Ring, token_of
from skywalker.wire import values
from tests.chaos.crowd import TIMEOUTS_MS, Crowd, Guest
from tests.chaos.disturbance import LONGEST_STOP_S, Disturber
from tests.chaos.judge import CAPABLE_OF_S, Judge, Violation
from tests.helpers import time_factor
from tests.history import check
from tests.workers.processes import node, open_files
from workers.ipc import exits

WORKERS = 4
CLIENTS = 80
SECONDS = float(os.environ.get("SKYWALKER_CHAOS_SECONDS", "15"))


@pytest.mark.timeout(SECONDS * 3 + 120)
def test_no_call_is_lost_made_up_or_late_while_workers_are_killed_stopped_and_drained() -> None:
    seed = int(os.environ.get("SKYWALKER_CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    print(f"SKYWALKER_CHAOS_SEED={seed} SKYWALKER_CHAOS_SECONDS={SECONDS:g}")
    with node(workers=WORKERS, drain_timeout_s=0.4) as running:
        with running.connect() as client:
            ring = Ring(client.greeting["tokens"])
        files = open_files(running.pid)
        # The kernel of a loopback address completes a connection, whatever the worker does.
        crowd = Crowd(lambda: (socket.create_connection(("127.0.0.1", running.port), 5), ""), random.Random(seed))
        crowd.clients += [Guest(crowd, number) for number in range(CLIENTS)]
        disturber = Disturber(running, random.Random(seed + 1), crowd.at)
        disturber.start()
        crowd.run(SECONDS)
        disturber.stop()
        # A connection in the accept queue of a dead worker waits for the successor, longest after many deaths in a row.
        crowd.finish(exits.MAX_DELAY_S + max(TIMEOUTS_MS) / 1000 + LONGEST_STOP_S + 3 * time_factor())
        running.wait_for_workers(WORKERS, within=exits.MAX_DELAY_S + 5)
        assert open_files(running.pid) == files
        deaths = disturber.resolve()
        log = running.log()
    judge = Judge(
        crowd.calls,
        crowd.connections,
        disturber.disturbances,
        deaths,
        owner=lambda topic: ring.owner(token_of(values.pack(topic))),
        tolerance_s=CAPABLE_OF_S * time_factor() + crowd.slowest_turn_s,
    )
    outcomes = Counter((call.kind, call.outcome) for call in crowd.calls)
    print(f"{len(crowd.calls)} calls: {dict(outcomes)}")
    print(
        f"{Counter(each.kind for each in disturber.disturbances)}, {len(crowd.connections)} connections, "
        f"slowest turn {crowd.slowest_turn_s * 1000:.0f} ms"
    )
    known = {call.label: call for call in crowd.calls}
    violations = [
        *judge.violations(),
        # Who missed whom the judge knows better: while a worker is dead, those that wait for it wait side by side.
        *(
            Violation(broken.rule.name, broken.rule, [known[call.id] for call in broken.calls])
            for broken in check(judge.history(), tolerance=judge.tolerance_s, missed_after=math.inf)
        ),
    ]
    print(f"{judge.unknown} senders were told that somebody may have their value")
    if violations or crowd.complaints:
        counted = dict(Counter(violation.rule for violation in violations))
        shown = [*crowd.complaints[:5], *(judge.explain(violation) for violation in violations[:5])]
        pytest.fail(f"{counted}, {len(crowd.complaints)} complaints\n\n" + "\n\n".join(shown), pytrace=False)
    assert "Traceback" not in log
    assert {death.pid for death in deaths} <= {each.pid for each in disturber.disturbances}
    # All of this would hold of a node that does nothing, too.
    met = sum(count for (kind, outcome), count in outcomes.items() if outcome == "met" and kind == "send")
    sent = sum(count for (kind, _), count in outcomes.items() if kind == "send")
    assert met > 0.3 * sent
    # Of a worker that is stopped nobody knows what it has handed on.
    assert judge.unknown < 0.1 * sent
    assert {each.kind for each in disturber.disturbances} == {"killed", "stopped", "drained"}
