"""The beat of a worker, and what it looks at with each."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests.workers.one_worker import OneWorker
from tests.workers.turns import life
from tests.workers.wire_client import call
from workers.stats import metrics
from workers.worker.heartbeat import BEAT_S, BEATS, Heartbeat


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    with contextlib.closing(OneWorker()) as made:
        yield made


def beat(worker: OneWorker) -> float:
    """Return when the loop turned last, in s."""
    return worker.core.turn.counters.memory[metrics.BEAT] / 1e6


def gauge(worker: OneWorker, metric: metrics.Metric) -> int:
    return worker.core.turn.counters.memory[metric.at]


def stands_still(worker: OneWorker, later: float) -> bool:
    """Return whether it has not beaten again by then. Time goes on a little by itself."""
    before = beat(worker)
    worker.turn(later)
    return beat(worker) == before


def test_it_beats_at_once_and_again_and_again_while_the_loop_turns(worker: OneWorker) -> None:
    assert beat(worker) == 0
    before = time.monotonic()
    Heartbeat(worker.core, 60.0).beat()
    assert before - 1e-5 <= beat(worker) <= time.monotonic()
    for _ in range(3):
        assert stands_still(worker, BEAT_S * 0.5)
        assert not stands_still(worker, BEAT_S * 1.05)


def test_a_loop_that_must_turn_sooner_beats_sooner(worker: OneWorker) -> None:
    watchdog_s = 2.0
    Heartbeat(worker.core, watchdog_s).beat()
    assert stands_still(worker, watchdog_s / BEATS / 2)
    assert not stands_still(worker, watchdog_s / BEATS * 1.05)


def test_a_loop_that_does_not_turn_does_not_beat(worker: OneWorker) -> None:
    Heartbeat(worker.core, 0.004).beat()
    before = beat(worker)
    time.sleep(0.02)
    assert beat(worker) == before
    worker.turn()
    assert beat(worker) > before


def test_with_each_beat_it_looks_at_who_waits_and_at_what_nobody_reads(worker: OneWorker) -> None:
    heartbeat = Heartbeat(worker.core, 60.0)
    heartbeat.beat()
    looked_at = (metrics.TOPICS, metrics.HELD_BYTES, metrics.CHOKED, metrics.UNREAD)
    assert [gauge(worker, each) for each in looked_at] == [0, 0, 0, 0]
    waits, deaf = worker.connect(), worker.connect()
    waits.write(call(":recv!", 1, 60_000, "a") + call(":send!", 2, 60_000, "b", 1000 * b"x"))
    worker.turn()
    assert gauge(worker, metrics.TOPICS) == 0, "not before the next beat"
    worker.turn(BEAT_S * 1.05)
    assert gauge(worker, metrics.TOPICS) == 2
    assert gauge(worker, metrics.HELD_BYTES) == worker.core.ledger.bytes_held > 1000

    deaf.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while not worker.core.connections.choked:
            deaf.write(1000 * call(":ping", 1))
            worker.turn()
    heartbeat.beat()
    assert gauge(worker, metrics.CHOKED) == 1
    [choked] = worker.core.connections.choked
    assert gauge(worker, metrics.UNREAD) == choked.unread > 0

    for client in (waits, deaf):
        client.close()
        worker.turn()
    heartbeat.beat()
    assert [gauge(worker, each) for each in looked_at] == [0, 0, 0, 0]


def test_with_each_beat_it_looks_at_what_other_workers_do_not_read(worker: OneWorker) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    worker.core.siblings.serve(ours, life())
    [link] = worker.core.siblings.all()
    while not link.unsent:
        link.outbound.settle()
    heartbeat = Heartbeat(worker.core, 60.0)
    heartbeat.beat()
    cells = worker.core.turn.counters.memory
    assert cells[metrics.UNSENT.at] == worker.core.unsent == link.unsent > 0
    assert cells[metrics.UNSENT.at + 1] == 0
    theirs.close()
    worker.turn()
    heartbeat.beat()
    assert cells[metrics.UNSENT.at] == 0
