"""Many connections with many calls that end at once: others are heard meanwhile."""

from __future__ import annotations

import contextlib

from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import call

CALLS = 1200
"""Of each: with two of them a turn has more than enough."""


def test_others_are_heard_before_all_who_hung_up_are_done_with() -> None:
    with contextlib.closing(OneWorker()) as worker:
        crowd = [worker.connect() for _ in range(10)]
        asker = worker.connect()
        for number, client in enumerate(crowd):
            client.write(b"".join(call(":recv!", n, 60_000, f"{number}/{n}") for n in range(CALLS)))
            worker.turn()
        left = worker.holds()["calls"]
        assert left == len(crowd) * CALLS
        for client in crowd:
            client.close()
        asker.call(":ping", 1)
        while left:
            worker.loop.turn(patient=False)
            before, left = left, worker.holds()["calls"]
            assert 0 < before - left <= 2 * CALLS
            if before == len(crowd) * CALLS:
                assert asker.reply() == [":ping", 1, True]
        assert worker.holds()["bytes"] == 0
        asker.close()
