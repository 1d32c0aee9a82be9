"""half_frame_s is time for a peer to write on, and does not run while it is the node that does not read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skywalker.limits import Limits
from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import WireClient, call

VALUE = b"v" * 60_000
COUNT = 20
HALF_FRAME_S = 10.0
PING = call(":ping", "whole")


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    worker = OneWorker(Limits(half_frame_s=HALF_FRAME_S, max_calls=COUNT, idle_probe_s=1e6))
    yield worker
    worker.close()


@pytest.fixture
def client(worker: OneWorker) -> Iterator[WireClient]:
    """A client that has begun a frame, and is then given more than the kernel takes."""
    with worker.connect() as client, worker.connect() as sender:
        for n in range(COUNT):
            client.call(":take!", n, 60_000, "topic", "pool")
        client.write(PING[:5])
        worker.turn()
        for n in range(COUNT):
            sender.call(":send!", n, 60_000, "topic", VALUE)
            worker.turn()
        yield client


def read_values(worker: OneWorker, client: WireClient) -> None:
    for _ in range(COUNT):
        worker.turn()
        assert client.reply()[0] == ":take!"


def test_a_frame_whose_rest_the_node_did_not_read_is_not_late(worker: OneWorker, client: WireClient) -> None:
    client.write(PING[5:])
    for seconds in (10.1, 20.2, 29.9):
        worker.turn(later=seconds)
    read_values(worker, client)
    worker.turn()
    assert client.reply() == [":ping", "whole", True]


def test_a_rest_that_does_not_come_once_the_node_reads_again_is_late(worker: OneWorker, client: WireClient) -> None:
    worker.turn(later=10.1)
    read_values(worker, client)
    worker.turn(later=10.1 + HALF_FRAME_S + 0.1)
    assert client.refusal().code == "bad-frame"
    client.wait_for_end()


def test_values_without_an_ack_are_no_reason_to_wait_for_a_rest(worker: OneWorker) -> None:
    with worker.connect() as client, worker.connect() as sender:
        client.call(":hello", 1, {"ack": True})
        for n in range(COUNT):
            client.call(":recv!", n, 60_000, ["topic", n])
            sender.call(":send!", n, 60_000, ["topic", n], "value")
        worker.turn()
        assert len(client.replies(1 + COUNT)) == 1 + COUNT
        client.write(PING[:5])
        worker.turn()
        worker.turn(later=HALF_FRAME_S + 0.1)
        assert client.refusal().code == "bad-frame"
        client.wait_for_end()
