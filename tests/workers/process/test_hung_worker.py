"""Workers whose loop does not turn any more: they are found out, say where they hang, and are replaced."""

from __future__ import annotations

import signal
from unittest import mock

import pytest

from tests.helpers import CLOCK, eventually, time_factor
from tests.simulation.kernel import Killed
from tests.workers import operated
from tests.workers.processes import FAULTY, node
from tests.workers.wire_client import ConnectionEnded
from workers.ipc import exits
from workers.stats.metrics import RESTARTED, RESTARTS
from workers.worker.worker import Worker

PATIENCE_S = 1.0


def test_a_worker_that_is_stopped_is_replaced_and_what_waits_elsewhere_meets() -> None:
    with operated.node(workers=2, watchdog_s=PATIENCE_S) as running, running.connect_to(1) as client:
        topic = client.topic_owned_by(0)
        waiting = client.begin(":recv!", 60_000, topic)
        client.wait_until(topic, receivers=1)
        victim = running.first_workers[0]
        running.kill(victim, signal.SIGSTOP)
        stopped_at = CLOCK.monotonic()
        # What it could not read any more is issued again.
        send = client.begin(":send!", 60_000, topic, "value")
        running.wait_for_workers(2, without=[victim], within=5.0)
        # Its time, a look, and a second for its last words, which one that is stopped does not have.
        assert PATIENCE_S <= CLOCK.monotonic() - stopped_at < (PATIENCE_S * 1.1 + 1.5)
        assert client.result(waiting) == "value"
        assert client.result(send) is True
        [hung] = running.events("worker-hung")
        assert (hung["worker"], hung["pid"]) == ("0", str(victim))
        assert [event["pid"] for event in running.events("killing-worker")] == [str(victim)]
        causes = {cause: running.node.figures[RESTARTED.cell(cause)] for cause in RESTARTS}
        assert {cause: count for cause, count in causes.items() if count} == {"hung": 1}
        assert "Traceback" not in running.log()


def test_a_worker_that_loops_without_end_says_where_before_it_is_replaced_however_often() -> None:
    # By real processes: it is the kernel that interrupts them.
    with node(workers=1, settings=[f"--watchdog={0.5 * time_factor()}s"], command=FAULTY) as running:
        for hung in (1, 2):
            with running.connect() as client:
                client.begin(":hang")
                eventually(lambda count=hung: len(running.events("worker-ended")) == count)
                with pytest.raises(ConnectionEnded):
                    client.answer(":ping")
        assert running.log().count("Fatal Python error: Aborted") == 2
        assert "hang_in_here" in running.log(), "the function where it hangs"
        assert [ended["how"] for ended in running.events("worker-ended")] == ['"signal SIGABRT"'] * 2
        assert not running.events("killing-worker")
        with running.connect() as other:
            assert other.answer(":ping") is True


def test_a_worker_that_hangs_for_less_than_its_time_is_not_replaced() -> None:
    with operated.node(workers=2, watchdog_s=2.0) as running, running.connect_to(0) as client:
        running.kill(running.first_workers[0], signal.SIGSTOP)
        ping = client.begin(":ping")
        CLOCK.sleep(0.8)
        running.kill(running.first_workers[0], signal.SIGCONT)
        assert client.result(ping) is True
        assert running.workers() == running.first_workers
        assert not running.events("worker-hung")


def test_a_node_that_is_stopped_whole_goes_on_with_all_its_workers() -> None:
    with operated.node(workers=2, watchdog_s=0.6) as running, running.connect_to(0) as client:
        waiting = client.begin(":recv!", 60_000, "topic")
        client.answer(":ping")
        processes = [running.pid, *running.first_workers]
        for _ in range(3):
            # The supervisor goes on first, beside workers that seem to hang.
            for pid in processes:
                running.kill(pid, signal.SIGSTOP)
            CLOCK.sleep(1.5 * 0.6)
            for pid in processes:
                running.kill(pid, signal.SIGCONT)
            assert client.answer(":ping") is True
        with running.connect() as sender:
            assert sender.answer(":send!", 5_000, "topic", "value") is True
        assert client.result(waiting) == "value"
        assert running.workers() == running.first_workers
        assert not running.events("worker-hung")


def test_a_worker_that_hangs_while_it_is_being_replaced_is_ended_too() -> None:
    with (
        operated.node(workers=2, drain_timeout_s=60, watchdog_s=PATIENCE_S) as running,
        running.connect_to(0) as client,
    ):
        client.answer(":ping")
        running.signal(signal.SIGHUP)
        running.wait_for_workers(3)
        victim = running.first_workers[0]
        running.kill(victim, signal.SIGSTOP)
        eventually(lambda: running.is_gone(victim), 5.0)
        eventually(lambda: running.events("reloaded"))
        assert len(running.workers()) == 2


def test_a_worker_that_hangs_while_its_node_drains_does_not_keep_it() -> None:
    with (
        operated.node(workers=2, drain_timeout_s=60, watchdog_s=PATIENCE_S) as running,
        running.connect_to(0) as client,
    ):
        waiting = client.begin(":recv!", 3_000, client.topic_owned_by(0))
        client.answer(":ping")
        running.signal(signal.SIGTERM)
        eventually(lambda: running.events("draining"))
        running.kill(running.first_workers[1], signal.SIGSTOP)
        assert client.result(waiting)
        assert running.wait(within=5.0) == exits.OK


@pytest.mark.parametrize(("before_s", "after_s"), [(10.0, 0.5), (0.5, 10.0)], ids=["shorter", "longer"])
def test_a_reload_that_changes_the_time_ends_nobody_who_beats_as_it_was_told(before_s: float, after_s: float) -> None:
    with operated.node(workers=2, drain_timeout_s=60, watchdog_s=before_s) as running:
        idle = [running.connect_to(slot) for slot in (0, 1)]
        running.node.configure(watchdog_s=after_s)
        running.signal(signal.SIGHUP)
        running.wait_for_successor(0)
        CLOCK.sleep(1.5)  # three times as long as the shorter one
        for client in idle:
            assert client.answer(":ping") is True
        for client in running.clients:
            client.close()
        eventually(lambda: running.events("reloaded"))
        assert not running.events("worker-hung")
        running.kill(victim := running.workers()[0], signal.SIGSTOP)
        CLOCK.sleep(0.9 * after_s)
        assert not running.events("worker-hung")
        eventually(lambda: running.is_gone(victim), 0.3 * after_s + 1.5)


def test_after_a_reload_that_failed_halfway_nobody_is_ended_who_beats_as_the_new_settings_say() -> None:
    with operated.node(workers=2, drain_timeout_s=60, watchdog_s=0.5) as running:
        running.connect_to(0)
        running.node.configure(watchdog_s=10.0)
        running.signal(signal.SIGHUP)
        running.wait_for_successor(0)
        with mock.patch.object(Worker, "begin", side_effect=Killed):
            for client in running.clients:
                client.close()
            eventually(lambda: running.events("reload-failed"))
        pids = running.workers()
        CLOCK.sleep(1.5)
        assert not running.events("worker-hung")
        assert running.workers() == pids
