"""Workers whose loop does not turn any more: they are found out, say where they hang, and are replaced."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from skywalker import embedding
from tests.helpers import CLOCK, eventually, time_factor
from tests.workers import operated
from tests.workers.processes import FAULTY, Node, is_gone, node
from tests.workers.reloads import wait_for_successor
from tests.workers.wire_client import ConnectionEnded
from workers.ipc import exits
from workers.process.liveness import AGENT_PATIENCE_S

PATIENCE_S = 1.0


def watched(patience_s: float = PATIENCE_S) -> list[str]:
    return [f"--watchdog={patience_s * time_factor()}s"]


def _wait_for_ends(running: Node, count: int) -> None:
    eventually(lambda: len(running.events("worker-ended")) == count)


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
        assert "Traceback" not in running.log()


def test_a_worker_that_loops_without_end_says_where_before_it_is_replaced() -> None:
    with node(workers=2, settings=watched(), command=FAULTY) as running:
        victim = running.first_workers[0]
        client = running.connect_to(0)
        client.begin(":hang")
        running.wait_for_workers(2, without=[victim], within=5.0)
        log = running.log()
        assert "Fatal Python error: Aborted" in log
        assert "hang_in_here" in log, "the function where it hangs"
        assert [ended["how"] for ended in running.events("worker-ended")] == ['"signal SIGABRT"']
        assert not running.events("killing-worker")
        with running.connect_to(0) as other:
            assert other.answer(":ping") is True
        with pytest.raises(ConnectionEnded):
            client.answer(":ping")


def test_a_worker_that_hangs_again_and_again_is_replaced_again_and_again() -> None:
    with node(workers=1, settings=watched(0.5), command=FAULTY) as running:
        for hung in (1, 2, 3):
            client = running.connect()
            client.begin(":hang")
            _wait_for_ends(running, hung)
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


def test_a_longer_time_that_a_reload_brings_holds(tmp_path: Path) -> None:
    file = tmp_path / "skywalker.toml"
    file.write_text(f"watchdog_s = {0.5 * time_factor()}\n")
    with node(workers=2, drain_timeout_s=0, settings=["--config", str(file)]) as running:
        file.write_text("watchdog_s = 60\n")
        running.signal(signal.SIGHUP)
        eventually(lambda: running.events("reloaded"))
        pid = running.workers()[0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0 * time_factor())  # nothing is to be waited for: it is to last
        os.kill(pid, signal.SIGCONT)
        assert not running.events("worker-hung")
        assert not is_gone(pid)


@pytest.mark.parametrize(("before_s", "after_s"), [(10.0, 0.5), (0.5, 10.0)], ids=["shorter", "longer"])
def test_a_reload_that_changes_the_time_ends_nobody_who_beats_as_it_was_told(
    tmp_path: Path, before_s: float, after_s: float
) -> None:
    file = tmp_path / "skywalker.toml"
    file.write_text(f"watchdog_s = {before_s * time_factor()}\n")
    with node(workers=2, drain_timeout_s=60, settings=["--config", str(file)]) as running:
        idle = [running.connect_to(slot) for slot in (0, 1)]
        file.write_text(f"watchdog_s = {after_s * time_factor()}\n")
        running.signal(signal.SIGHUP)
        wait_for_successor(running, 0)
        time.sleep(1.5 * 0.5 * time_factor())  # nothing is to be waited for: it is to last
        for client in idle:
            assert client.answer(":ping") is True
            client.close()
        eventually(lambda: running.events("reloaded"))
        assert not running.events("worker-hung")
        assert not set(running.first_workers) & set(running.workers())
        if after_s < before_s:
            os.kill(running.workers()[0], signal.SIGSTOP)
            eventually(lambda: running.events("worker-hung"), 2.0)


def test_after_a_reload_that_failed_halfway_nobody_is_ended_who_beats_as_the_new_settings_say(
    tmp_path: Path, fault: Path
) -> None:
    file = tmp_path / "skywalker.toml"
    file.write_text(f"watchdog_s = {0.5 * time_factor()}\n")
    with node(workers=2, drain_timeout_s=60, settings=["--config", str(file)], command=FAULTY) as running:
        old = running.connect_to(0)
        file.write_text(f"watchdog_s = {10 * time_factor()}\n")
        running.signal(signal.SIGHUP)
        wait_for_successor(running, 0)
        fault.touch()
        old.close()
        eventually(lambda: running.events("reload-failed"))
        fault.unlink()
        pids = running.workers()
        time.sleep(1.5 * 0.5 * time_factor())  # nothing is to be waited for: it is to last
        assert not running.events("worker-hung")
        assert running.workers() == pids


def test_an_agent_that_is_stopped_is_replaced_and_workers_are_left_alone() -> None:
    with node(workers=1, settings=["--health-port=0", "--join=127.0.0.1:1", *watched(0.5)]) as running:

        def agent() -> int:
            children = (psutil.Process(pid) for pid in running.workers())
            return next((child.pid for child in children if child.name() == embedding.AGENT), 0)

        stopped = eventually(agent)
        os.kill(stopped, signal.SIGSTOP)
        eventually(lambda: is_gone(stopped), within=AGENT_PATIENCE_S + 3.0)
        assert [event["pid"] for event in running.events("agent-hung")] == [str(stopped)]
        assert eventually(agent) != stopped
        assert running.first_workers[0] in running.workers()
