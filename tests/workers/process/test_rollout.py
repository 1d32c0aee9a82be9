"""What becomes of a reload, and of the calls of the node, when one of the workers in it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.helpers import eventually
from tests.workers.processes import FAULTY, Node, is_gone, node, open_files
from tests.workers.reloads import (
    Wanderer,
    begin_reload,
    pids_that_listen,
    reload,
    reloads,
    wait_for_reloads,
    wait_for_successor,
)
from tests.workers.wire_client import ConnectionEnded, code_of
from workers.ipc import exits

LONG_MS = 60_000


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, signal.SIGKILL)


def successor(running: Node) -> int:
    """Return the worker that has just been forked."""
    # No pause: its first moments are the point.
    deadline = time.monotonic() + 10
    while not (new := set(running.workers()) - set(running.first_workers)):
        assert time.monotonic() < deadline
    return new.pop()


def successor_that_stands_still(running: Node) -> int:
    """Return the one of a reload that has begun; for a node whose workers stop as they start, from now on."""

    def stopped() -> int:
        [new] = set(running.workers()) - set(running.first_workers)
        return new if psutil.Process(new).status() == psutil.STATUS_STOPPED else 0

    return eventually(stopped)


def assert_serves(running: Node, workers: int) -> None:
    """Assert that the node has so many workers, who let clients in whose calls meet, whoever owns their topics."""
    pids = running.wait_for_workers(workers, within=10.0)
    eventually(lambda: pids_that_listen(running) == {*pids})
    for slot in range(workers):
        with running.connect_to(slot) as receiver, running.connect_to((slot + 1) % workers) as sender:
            for owner in range(workers):
                topic = receiver.topic_owned_by(owner)
                call = receiver.begin(":recv!", 5_000, topic)
                assert sender.answer(":send!", 5_000, topic, owner) is True
                assert receiver.result(call) == owner
    assert running.process.poll() is None
    assert "Traceback" not in running.log()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_successor_that_dies_as_soon_as_it_is_forked_leaves_all_as_it_was(workers: int) -> None:
    with node(workers=workers) as running, running.connect_to(0) as client:
        topic = client.topic_owned_by(0)
        waiting = client.begin(":recv!", LONG_MS, topic)
        client.answer(":ping")
        begin_reload(running)
        kill(successor(running))
        with Wanderer(running) as sender:
            assert sender.answer(":send!", 5_000, topic, "value") is True
        assert client.result(waiting) == "value"
        # It may have come to serve before it died, and then its predecessor is waited for.
        client.close()
        [ending] = eventually(lambda: reloads(running))
        if ending == "reload-failed":
            assert running.workers() == running.first_workers
        assert_serves(running, workers)
        reload(running)
        assert_serves(running, workers)


def test_a_worker_that_dies_while_its_successor_starts_is_succeeded_all_the_same() -> None:
    with node(workers=2, drain_timeout_s=1) as running:
        for round in range(6):
            victim = min(running.workers())
            begin_reload(running)
            # From before the fork to after it is ready.
            time.sleep(0.004 * round)
            kill(victim)
            wait_for_reloads(running, round + 1)
            assert_serves(running, 2)


def test_a_worker_and_its_successor_that_die_together_are_both_replaced_by_one(fault: Path) -> None:
    with node(workers=2, drain_timeout_s=1, command=FAULTY) as running, running.connect_to(1) as client:
        topic = client.topic_owned_by(0)
        waiting = client.begin(":recv!", LONG_MS, topic)
        client.wait_until(topic, receivers=1)
        fault.write_text("stop")
        begin_reload(running)
        new = successor_that_stands_still(running)
        fault.unlink()
        kill(running.first_workers[0])
        eventually(lambda: running.events("worker-ended"))
        kill(new)
        eventually(lambda: len(running.events("worker-ended")) >= 2)
        with running.connect_to(1) as sender:
            assert sender.answer(":send!", 10_000, topic, "value") is True
        assert client.result(waiting) == "value"
        client.close()
        eventually(lambda: reloads(running), 20.0)
        assert_serves(running, 2)


def test_a_worker_that_dies_while_it_is_being_replaced_costs_its_own_connections_alone() -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as old, running.connect_to(1) as other:
        topic = other.topic_owned_by(0)
        lost = old.begin(":recv!", LONG_MS, topic)
        kept = other.begin(":take!", LONG_MS, topic, "group")
        other.wait_until(topic, receivers=1, takers={"group": 1})
        begin_reload(running)
        wait_for_successor(running, 0)
        kill(running.first_workers[0])
        with pytest.raises(ConnectionEnded):
            old.result(lost)
        other.wait_until(topic, receivers=0)
        with running.connect_to(0) as sender:
            assert sender.answer(":send!", 5_000, topic, "value") is True
            assert other.result(kept) == "value"
        other.close()
        eventually(lambda: reloads(running) == ["reloaded"], 20.0)
        assert_serves(running, 2)


def test_a_successor_that_dies_while_its_predecessor_drains_is_succeeded_and_no_call_is_lost() -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as old, running.connect_to(1) as other:
        topics = [other.topic_owned_by(0) for _ in range(20)]
        waiting = [client.begin(":recv!", LONG_MS, topic) for client in (old, other) for topic in topics]
        other.wait_until(topics[-1], receivers=2)
        begin_reload(running)
        wait_for_successor(running, 0)
        [new] = set(running.workers()) - set(running.first_workers)
        for _ in range(3):
            kill(new)
            _, _, new = running.wait_for_workers(3, without=[new])
        with running.connect_to(0) as sender:
            sends = [sender.begin(":send!", 5_000, topic, topic) for topic in topics]
            assert [sender.result(send) for send in sends] == [True] * 20
        calls = zip([old] * 20 + [other] * 20, waiting, topics * 2, strict=True)
        assert all(client.result(call) == topic for client, call, topic in calls)
        assert not is_gone(running.first_workers[0])
        old.close()
        other.close()
        eventually(lambda: reloads(running) == ["reloaded"], 20.0)
        assert_serves(running, 2)


def test_a_sibling_that_dies_while_another_worker_is_replaced_is_linked_to_both() -> None:
    with node(workers=3, drain_timeout_s=60) as running, running.connect_to(0) as old, running.connect_to(2) as other:
        topics = [other.topic_owned_by(owner) for owner in (0, 1, 2)]
        waiting = [client.begin(":recv!", LONG_MS, topic) for client in (old, other) for topic in topics]
        for topic in topics:
            other.wait_until(topic, receivers=2)
        begin_reload(running)
        wait_for_successor(running, 0)
        kill(running.first_workers[1])
        with running.connect_to(1) as sender:
            for topic in topics:
                sender.wait_until(topic, receivers=2)
                assert sender.answer(":send!", 5_000, topic, topic) is True
        calls = zip([old] * 3 + [other] * 3, waiting, topics * 2, strict=True)
        assert all(client.result(call) == topic for client, call, topic in calls)


def test_a_worker_that_is_told_to_end_just_before_a_reload_is_replaced_once() -> None:
    with node(workers=2, drain_timeout_s=2) as running, running.connect_to(0) as old:
        waiting = old.begin(":recv!", LONG_MS, old.topic_owned_by(1))
        old.answer(":ping")
        os.kill(running.first_workers[0], signal.SIGTERM)
        eventually(lambda: running.events("worker-draining"))
        begin_reload(running)
        assert code_of(old.result, waiting) == "draining"
        eventually(lambda: reloads(running) == ["reloaded"], 20.0)
        assert_serves(running, 2)


@pytest.mark.parametrize("who", ["predecessor", "successor", "both"])
def test_a_node_ends_in_good_order_if_one_dies_in_a_reload_as_it_is_told_to(who: str) -> None:
    with node(workers=2, drain_timeout_s=60) as running, running.connect_to(0) as old:
        old.begin(":recv!", LONG_MS, "topic")
        begin_reload(running)
        wait_for_successor(running, 0)
        victims = {"predecessor": running.first_workers[:1], "successor": [successor(running)]}
        victims["both"] = [*victims["predecessor"], *victims["successor"]]
        running.signal(signal.SIGTERM)
        for pid in victims[who]:
            kill(pid)
        old.close()
        assert running.wait(within=5.0) == exits.OK
        assert "Traceback" not in running.log()


# What makes a successor fail.


def test_a_node_whose_successors_fail_as_they_start_goes_on_with_the_workers_it_has(fault: Path) -> None:
    with node(workers=2, command=FAULTY) as running, running.connect_to(0) as client:
        waiting = client.begin(":recv!", LONG_MS, topic := client.topic_owned_by(0))
        client.answer(":ping")
        fault.touch()
        for failures in (1, 2):
            begin_reload(running)
            wait_for_reloads(running, failures)
        assert [failed["worker"] for failed in running.events("reload-failed")] == ["0", "0"]
        assert running.workers() == running.first_workers
        assert {*running.workers()} == pids_that_listen(running)
        with running.connect() as sender:
            assert sender.answer(":send!", 1_000, topic, "value") is True
        assert client.result(waiting) == "value"
        fault.unlink()
        client.close()
        reload(running)
        assert not {*running.workers()} & {*running.first_workers}


def test_a_machine_without_room_for_a_successor_keeps_its_workers() -> None:
    with node(workers=2) as running, running.connect_to(0) as client:
        soft, hard = psutil.Process(running.pid).rlimit(psutil.RLIMIT_NOFILE)
        psutil.Process(running.pid).rlimit(psutil.RLIMIT_NOFILE, (open_files(running.pid) - 1, hard))
        begin_reload(running)
        eventually(lambda: reloads(running) == ["reload-failed"])
        assert running.events("cannot-fork")
        assert client.answer(":ping") is True
        assert running.workers() == running.first_workers
        psutil.Process(running.pid).rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
        client.close()
        begin_reload(running)
        eventually(lambda: "reloaded" in reloads(running))
        assert_serves(running, 2)


def test_a_successor_that_hangs_before_it_serves_is_given_up_and_the_node_goes_on(fault: Path) -> None:
    with (
        node(workers=2, drain_timeout_s=1, settings=["--watchdog=2s"], command=FAULTY) as running,
        running.connect_to(0) as client,
    ):
        fault.write_text("stop")
        begin_reload(running)
        new = successor_that_stands_still(running)
        fault.unlink()
        eventually(lambda: reloads(running), 10.0)
        eventually(lambda: is_gone(new))
        assert client.answer(":ping") is True
        client.close()
        assert_serves(running, 2)
