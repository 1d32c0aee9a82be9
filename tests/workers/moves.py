"""Real connections that move from worker to worker while they pipeline: nothing is lost, doubled or out of order.

python -m tests.workers.moves                # until 10,000 have moved
python -m tests.workers.moves --moves 1000 --workers 4

Then some move on which calls wait, and how long their clients wait for an answer meanwhile.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from typing import Final

import skywalker
from skywalker.cli.admin_api import AdminAddress, AdminApi
from skywalker.cli.node import STATE
from tests.workers.pairs import TIMEOUT_MS, have_meet, moved
from tests.workers.running_nodes import Node
from tests.workers.wire_client import WireClient, clients_of

CALLS: Final = 1200
"""Of each connection on its topic: 1,000 draw it, the others are made while it moves and after."""

EVERY: Final = 20
"""Pairs between two looks at how many have moved."""

WAITING: Final = 100
"""Calls that wait on a connection whose move is timed."""

DRAWING: Final = 990
"""Calls that draw it nearly there, with those that wait; the last ones are made one by one."""

TIMED: Final = 50


def stall(node: Node, about: str) -> float:
    """Have a connection move on which calls wait; return for how many seconds its client waited for an answer at most.

    Whatever it asks is answered at once but for the move. Afterwards those that wait meet somebody, each once.
    """
    with clients_of(node.address) as connect:
        client, taker = connect(worker=0), connect(worker=1)
        topics = [node.topic_of(1, f"{about}.{number}") for number in range(WAITING)]
        waiting = [client.begin(":recv!", TIMEOUT_MS, topic) for topic in topics]
        topic = node.topic_of(1, about)
        have_meet(client, taker, topic, DRAWING - WAITING)
        longest, is_there = 0.0, False
        while not is_there:
            began = time.perf_counter()
            have_meet(client, taker, topic, 1)
            met = time.perf_counter()
            is_there = client.worker() == 1
            longest = max(longest, met - began, time.perf_counter() - met)
        for number, each in enumerate(topics):
            assert taker.answer(":send!", TIMEOUT_MS, each, number) is True
        assert [client.result(call) for call in waiting] == [*range(WAITING)]
    return longest


def main() -> int:
    """Have as many move as are wanted; raises AssertionError where an answer is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.workers.moves", description=__doc__)
    parser.add_argument("--moves", type=int, default=10_000, help="how many connections move")
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    began = time.monotonic()
    with skywalker.embedded(workers=options.workers, admin=True, max_moves=100_000) as embedded:
        node, api = Node(embedded), AdminApi(AdminAddress.parse(embedded.admin_address))
        for pair in itertools.count():
            with WireClient.open(node.address) as sender, WireClient.open(node.address) as taker:
                have_meet(sender, taker, f"pair{pair}", CALLS)
            if pair % EVERY == EVERY - 1 and moved(api.get(STATE)) >= options.moves:
                break
        count = moved(api.get(STATE))
        print(f"{count} connections of {2 * pair + 2} moved in {time.monotonic() - began:.0f} s;")
        print(f"all {(pair + 1) * CALLS} values came once, and in order")
        stalls = [1e6 * stall(node, f"timed{number}") for number in range(TIMED)]
    median, worst = statistics.median(stalls), max(stalls)
    print(f"{TIMED} more moved, each with {WAITING} calls that wait:")
    print(f"no answer took longer than {median:.0f} us, {worst:.0f} us in the worst of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
