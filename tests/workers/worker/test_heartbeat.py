"""The beat of a worker, which says that its loop turns, and what it looks at with each."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from skywalker.limits import Limits
from skywalker.wire import values
from tests.workers.one_worker import OneWorker, choke
from tests.workers.turns import life
from tests.workers.wire_client import call
from workers.stats import metrics
from workers.worker.heartbeat import BEAT_S, BEATS, Heartbeat


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    with contextlib.closing(OneWorker(Limits(unread_output_s=30.0))) as made:
        yield made


@pytest.mark.parametrize(("watchdog_s", "period_s"), [(60.0, BEAT_S), (2.0, 2.0 / BEATS)])
def test_it_beats_at_once_and_every_second_or_sooner_while_the_loop_turns(
    worker: OneWorker, watchdog_s: float, period_s: float
) -> None:
    def beat() -> int:
        return worker.hub.turn.counters.memory[metrics.BEAT]

    Heartbeat(worker.hub, watchdog_s).beat()
    for _ in range(3):
        last = beat()
        worker.turn(period_s * 0.5)
        assert beat() == last > 0
        worker.turn(period_s * 1.05)
        assert beat() > last


# With each beat.


def test_gauges_are_what_there_is_at_the_next_beat(worker: OneWorker) -> None:
    Heartbeat(worker.hub, 60.0).beat()
    with worker.connect() as one, worker.connect() as other:
        one.write(b"".join(call(":recv!", n, 60_000, ["topic", n]) for n in range(3)))
        one.write(b"".join(call(":take!", n, 60_000, ["topic", n], "group") for n in range(2, 7)))
        one.write(b"".join(call(":subscribe", n, ["topic", n]) for n in range(4, 10)))
        other.write(b"".join(call(":send!", n, 60_000, ["other", n], 1000 * b"x") for n in range(7)))
        worker.turn()
        assert worker.counted(metrics.TOPICS) == {}, "not before the next beat"
        worker.turn(BEAT_S * 1.05)
        assert worker.counted(metrics.TOPICS) == {"": 17}
        assert worker.counted(metrics.HELD_BYTES) == {"": worker.hub.core.held()[1]}
        assert worker.hub.core.held()[1] > 7000
        assert worker.counted(metrics.CHOKED) == worker.counted(metrics.UNREAD) == worker.counted(metrics.UNSENT) == {}
    worker.turn()
    worker.turn(BEAT_S * 2.1)
    assert worker.counted(metrics.TOPICS) == worker.counted(metrics.HELD_BYTES) == {}


@pytest.mark.parametrize("ends", [True, False], ids=["it is closed", "it reads at last"])
def test_who_does_not_read_is_choked_until_it_does_or_is_gone(worker: OneWorker, ends: bool) -> None:
    heartbeat = Heartbeat(worker.hub, 10.0)
    with worker.connect() as slow, worker.connect() as sender:
        choke(worker, slow, sender)
        heartbeat.beat()
        assert worker.counted(metrics.CHOKED) == {"": 1}
        [unread] = worker.hub.clients.choked().values()
        assert unread > 0
        assert worker.counted(metrics.UNREAD) == {"": unread}
        if ends:
            slow.close()
            worker.turn()
        else:
            for _ in range(40):
                worker.turn()
                slow.reply()
        heartbeat.beat()
        assert worker.counted(metrics.CHOKED) == worker.counted(metrics.UNREAD) == {}


def test_it_looks_at_what_other_workers_do_not_read(worker: OneWorker) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    worker.hub.siblings.serve(ours.detach(), life())
    [link] = worker.hub.siblings.all()
    link.settle()
    heartbeat = Heartbeat(worker.hub, 60.0)
    heartbeat.beat()
    cells = worker.hub.turn.counters.memory
    assert cells[metrics.UNSENT.at] == worker.hub.unsent == link.unsent > 0
    assert cells[metrics.UNSENT.at + 1] == 0
    theirs.close()
    worker.turn()
    heartbeat.beat()
    assert cells[metrics.UNSENT.at] == 0


def test_after_many_calls_at_once_few_are_all_told_again(worker: OneWorker) -> None:
    heartbeat = Heartbeat(worker.hub, 10.0)
    rates = worker.hub.turn.counters.recent.rates
    with worker.connect() as client:
        for _ in range(20):
            client.write(b"".join(call(":send!", n, 0, "many", n) for n in range(100)))
            worker.turn()
            client.replies(100)
        time.sleep(BEAT_S)  # it is chosen anew by the clock
        heartbeat.beat()
        client.call(":send!", 0, 0, "one", 0)
        worker.turn()
        assert {values.pack("many"), values.pack("one")} == rates(worker.hub.turn.now).keys()


def test_ten_thousand_idle_subscriptions_do_not_make_a_beat_long(worker: OneWorker) -> None:
    heartbeat = Heartbeat(worker.hub, 10.0)
    with worker.connect() as client:
        for first in range(0, 10_000, 500):
            client.write(b"".join(call(":subscribe", n, ["topic", n]) for n in range(first, first + 500)))
            worker.turn()
            client.replies(500)
        times = []
        for _ in range(20):
            began = time.thread_time()
            heartbeat.beat()
            times.append(time.thread_time() - began)
        assert worker.counted(metrics.TOPICS) == {"": 10_000}
        assert worker.counted(metrics.WAITING) == {"subscription": 10_000}
        assert min(times) < 0.001
