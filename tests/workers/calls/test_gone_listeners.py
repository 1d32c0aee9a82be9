"""A listener whose connection has had its last words listens no more, whatever becomes of the value it was given."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import TIMED_OUT, call

VALUE = b"v" * 60_000
COUNT = 12
GARBAGE = b"\x00\x01\xc1" * 16


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    worker = OneWorker()
    yield worker
    worker.close()


@pytest.mark.parametrize("group", [[], ["pool"]], ids=["receives", "takes"])
def test_a_listener_that_is_gone_with_a_value_in_flight_is_not_put_back_in_line(
    worker: OneWorker, group: list[str]
) -> None:
    method = ":take!" if group else ":recv!"
    with worker.connect() as sender, worker.connect() as leaving, worker.connect() as watcher:
        for n in range(COUNT):
            sender.call(":send!", n, 5_000, "topic", VALUE)
            worker.turn()
        # It gets more than the kernel takes, and then speaks nonsense.
        leaving.write(b"".join(call(method, n, 3_600_000, "topic", *group) for n in range(COUNT)) + GARBAGE)
        worker.turn()
        worker.turn(later=5.1)
        worker.turn(later=5.2)  # of one that is half written, nothing is heard in time
        results = [result for _, _, result in sender.replies(COUNT)]
        assert TIMED_OUT in results
        assert True in results
        while leaving.has_input() and leaving.socket.recv(1 << 20):
            worker.turn(later=5.1)
        watcher.call(":topic", 1, "topic")
        worker.turn()
        counted = watcher.reply()[2]
        assert (counted["receivers"], counted["takers"], counted["senders"]) == (0, {}, 0)
        leaving.close()
        worker.turn(later=10)
        assert worker.holds() == {"calls": 0, "bytes": 0, "topics": 0, "deadlines": 0}
