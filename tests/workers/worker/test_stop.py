"""A worker that stops in the middle of a turn answers everybody, and everybody with the truth."""

from __future__ import annotations

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
