"""A worker that stops in the middle of a turn answers everybody, and everybody with the truth."""

from __future__ import annotations

import random

from skywalker.wire import pubsub
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.worlds import LIMITS, Wire
from tests.workers.one_worker import OneWorker

FRAMES_PER_TURN = 64


def test_a_send_that_meets_somebody_whose_turn_comes_only_as_its_worker_stops_is_told_so() -> None:
    worker = OneWorker()
    with worker.connect() as receiver, worker.connect() as sender:
        sender.call(":send!", 1, 60_000, "topic", "value")
        worker.turn()
        with receiver.in_one_write():
            for id in range(FRAMES_PER_TURN):
                receiver.call(":ping", id)
            receiver.call(":recv!", "last", 60_000, "topic")
        worker.loop.turn(patient=False)
        worker.hub.stop()
        pings = receiver.replies(FRAMES_PER_TURN)
        assert [reply[1] for reply in pings] == [*range(FRAMES_PER_TURN)]
        assert receiver.reply() == [":recv!", "last", "value"]
        assert sender.reply() == [":send!", 1, True]
    worker.close()


def test_so_is_one_that_is_cancelled_only_as_its_worker_stops() -> None:
    worker = OneWorker()
    with worker.connect() as receiver, worker.connect() as sender:
        sender.call(":send!", 1, 60_000, "topic", "value")
        worker.turn()
        for client, last in ((receiver, (":recv!", "last", 60_000, "topic")), (sender, (":cancel", "last", 1))):
            with client.in_one_write():
                for id in range(FRAMES_PER_TURN):
                    client.call(":ping", id)
                client.call(*last)
        worker.loop.turn(patient=False)
        worker.hub.stop()
        receiver.replies(FRAMES_PER_TURN)
        assert receiver.reply() == [":recv!", "last", "value"]
        assert sender.replies(FRAMES_PER_TURN + 2)[FRAMES_PER_TURN:] == [
            [":send!", 1, True],
            [":cancel", "last", False],
        ]
    worker.close()


def test_one_that_leaves_stays_until_a_sibling_has_read_that_what_it_published_is_in_effect() -> None:
    layout = Layout([0, 0], random.Random(1))
    cluster = Cluster(layout, LIMITS, 1)
    leaver, sibling = cluster.workers
    publishing = cluster.worlds[1].wires[50] = Wire(50)
    sibling.connect(50, pubsub=True)
    cluster.settle()
    cluster.ends[0, 1].room = 0
    publishing.coming += pubsub.publish(layout.published_to(0), b"payload")
    cluster.settle()
    leaver.hub.leave()
    cluster.settle()
    assert not publishing.taken, "it would be published again if the worker ended now"
    assert not leaver.hub.has_left()
    cluster.ends[0, 1].room = 1
    cluster.settle()
    assert len(publishing.taken) == 1
    assert leaver.hub.has_left()
