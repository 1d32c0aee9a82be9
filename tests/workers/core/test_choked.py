"""What is sent to a subscriber who reads nothing: senders wait for what becomes of it, and may be very many."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import Final

from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.workers.core.clusters import Cluster, Layout
from tests.workers.core.test_moving import answers, framed
from tests.workers.core.worlds import LIMITS, Wire

TOPIC: Final = values.pack("topic")
AT_ONCE: Final = 64
"""Frames of one connection that are done in a turn."""


class Choked:
    """A worker with a sender, and with a subscriber who reads nothing."""

    def __init__(self, **limits: int) -> None:
        self.cluster = Cluster(Layout([0], random.Random(1)), dataclasses.replace(LIMITS, **limits), 1)
        (self.worker,) = self.cluster.workers
        self.subscriber, self.sender = (self.connect(fd) for fd in (11, 12))
        self.subscriber.coming += framed(wire.SUBSCRIBE, values.pack(0), TOPIC)
        self.cluster.settle()
        self.subscriber.taken.clear()
        self.subscriber.room = 1

    def connect(self, fd: int) -> Wire:
        made = self.worker.world.wires[fd] = Wire(fd)
        made.room = 10**9
        self.worker.connect(fd)
        return made

    def send(self, count: int, timeout_ms: int) -> None:
        for id in range(count):
            self.sender.coming += framed(wire.SEND, values.pack(id), values.pack(timeout_ms), TOPIC, values.pack(1))
        self.cluster.settle()


def test_no_more_sends_of_one_connection_wait_for_it_than_may_wait() -> None:
    choked = Choked()
    choked.send(1000, 60_000)
    kept = choked.worker.core.holds["calls"]
    assert LIMITS.max_calls < kept <= LIMITS.max_calls + AT_ONCE
    assert len(answers(choked.sender)) == 1000 - kept, "those are refused"
    choked.subscriber.room = 10**6
    choked.cluster.settle()
    assert [each[2] for each in answers(choked.sender)] == [wire.TRUE] * kept
    choked.send(1, 60_000)
    assert [each[2] for each in answers(choked.sender)] == [wire.TRUE]


def test_to_leave_out_all_whose_senders_are_gone_takes_no_longer_than_to_hear_them() -> None:
    choked = Choked(max_calls=10**6, subscriber_buffer=10**7, waiting_bytes=10**9)
    began = time.process_time()
    choked.send(30_000, 100)
    took = time.process_time() - began
    for _ in range(40):
        choked.cluster.pass_until(choked.cluster.now + 0.05)
        choked.cluster.settle()
    core = choked.worker.core
    assert (core.holds["calls"], core.holds["rows"] > 30_000) == (0, True)
    choked.subscriber.room = 100
    began = time.process_time()
    choked.cluster.settle()
    assert core.holds["rows"] < 10
    assert time.process_time() - began < took
