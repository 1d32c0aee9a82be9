"""A worker beats as long as its loop turns, and has its gauges written down then."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skywalker.limits import Limits
from tests.helpers import time_factor
from tests.workers.one_worker import OneWorker
from tests.workers.wire_client import WireClient, call
from workers.stats import metrics
from workers.stats.metrics import BEAT
from workers.worker.heartbeat import Heartbeat


@pytest.fixture
def worker() -> Iterator[OneWorker]:
    worker = OneWorker(Limits(unread_output_s=30.0))
    yield worker
    worker.close()


def beat_of(worker: OneWorker) -> int:
    return worker.core.turn.counters.memory[BEAT]


@pytest.mark.parametrize(("watchdog_s", "period_s"), [(10.0, 1.0), (4.0, 1.0), (2.0, 0.5), (0.1, 0.025)])
def test_beats_every_second_or_four_times_in_the_time_of_the_watchdog(
    worker: OneWorker, watchdog_s: float, period_s: float
) -> None:
    before = time.monotonic()
    assert beat_of(worker) == 0
    Heartbeat(worker.core, watchdog_s).beat()
    first = beat_of(worker)
    assert before * 1e6 - 1 <= first <= time.monotonic() * 1e6
    for _ in range(3):
        last = beat_of(worker)
        deadlines = worker.core.turn.deadlines
        assert deadlines.wait(last / 1e6) == pytest.approx(period_s, abs=0.03)
        time.sleep(period_s)
        while worker.loop.turn(worker.core.turn) or beat_of(worker) == last:
            pass
        assert period_s <= (beat_of(worker) - last) / 1e6 < period_s + 0.1 * time_factor()
        if period_s == 1.0:
            return


def test_beats_on_while_it_drains(worker: OneWorker) -> None:
    with worker.connect() as client:
        client.call(":recv!", 1, 60_000, "nobody sends")
        worker.turn()
        Heartbeat(worker.core, 0.4).beat()
        worker.core.drain()
        last = beat_of(worker)
        for later in (0.2, 0.4, 0.6):
            worker.turn(later)
            assert beat_of(worker) > last
            last = beat_of(worker)
        worker.core.stop()


def test_gauges_are_what_there_is(worker: OneWorker) -> None:
    heartbeat = Heartbeat(worker.core, 10.0)
    with worker.connect() as one, worker.connect() as other:
        one.write(b"".join(call(":recv!", n, 60_000, ["topic", n]) for n in range(3)))
        one.write(b"".join(call(":take!", n, 60_000, ["topic", n], "group") for n in range(2, 7)))
        one.write(b"".join(call(":subscribe", n, ["topic", n]) for n in range(4, 10)))
        other.write(b"".join(call(":send!", n, 60_000, ["other", n], "value") for n in range(7)))
        worker.turn()
        heartbeat.beat()
        assert worker.counted(metrics.TOPICS) == {"": 17}
        assert worker.counted(metrics.HELD_BYTES) == {"": worker.core.ledger.bytes_held}
        assert worker.counted(metrics.CHOKED) == worker.counted(metrics.UNREAD) == {}
        assert worker.counted(metrics.UNSENT) == {}
        one.close()
        other.close()
        worker.turn()
        heartbeat.beat()
    assert worker.counted(metrics.TOPICS) == worker.counted(metrics.HELD_BYTES) == {}


@pytest.mark.parametrize("ends", [True, False], ids=["it is closed", "it reads at last"])
def test_who_does_not_read_is_choked_until_it_does_or_is_gone(worker: OneWorker, ends: bool) -> None:
    heartbeat = Heartbeat(worker.core, 10.0)
    with worker.connect() as slow, worker.connect() as sender:
        choke(worker, slow, sender)
        heartbeat.beat()
        assert worker.counted(metrics.CHOKED) == {"": 1}
        [outlet] = worker.core.connections.choked
        assert outlet.unread > 0
        assert worker.counted(metrics.UNREAD) == {"": outlet.unread}
        if ends:
            slow.close()
            worker.turn()
        else:
            for _ in range(40):
                worker.turn()
                slow.reply()
        heartbeat.beat()
        assert worker.counted(metrics.CHOKED) == worker.counted(metrics.UNREAD) == {}


def choke(worker: OneWorker, slow: WireClient, sender: WireClient) -> None:
    for n in range(40):
        slow.call(":take!", n, 60_000, "topic", "pool")
    worker.turn()
    for n in range(40):
        sender.call(":send!", n, 60_000, "topic", b"v" * 60_000)
        worker.turn()


def test_ten_thousand_idle_subscriptions_do_not_make_a_beat_long(worker: OneWorker) -> None:
    heartbeat = Heartbeat(worker.core, 10.0)
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
        print(f"{min(times) * 1e6:.0f} us")
        assert min(times) < 0.001
