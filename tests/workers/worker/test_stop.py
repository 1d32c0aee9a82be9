"""A worker that stops in the middle of a turn answers everybody, and everybody with the truth."""

from __future__ import annotations

from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import call, refusal


def test_a_send_that_met_somebody_in_the_turn_in_which_its_worker_stops_is_told_so() -> None:
    worker = OneWorker()
    with worker.connect() as sender, worker.connect() as lonely, worker.connect() as receiver:
        sender.call(":send!", 1, 60_000, "topic", "value")
        lonely.call(":send!", 1, 60_000, "other", "value")
        worker.turn()
        # What it reads last, before it is told to stop.
        *_, session = worker.core.connections
        session.received(call(":recv!", 2, 60_000, "topic"))
        worker.core.stop()
        assert receiver.reply() == [":recv!", 2, "value"]
        assert sender.reply() == [":send!", 1, True]
        assert refusal(lonely.reply()).code == "draining"
        for client in (sender, lonely, receiver):
            client.wait_for_end()
    worker.turn()  # they have closed
    assert worker.holds() == {"calls": 0, "bytes": 0, "topics": 0, "alarms": 0}
    worker.close()


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
        worker.core.stop()
        pings = receiver.replies(FRAMES_PER_TURN)
        assert [reply[1] for reply in pings] == [*range(FRAMES_PER_TURN)]
        assert receiver.reply() == [":recv!", "last", "value"]
        assert sender.reply() == [":send!", 1, True]
    worker.close()
