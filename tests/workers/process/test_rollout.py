"""What becomes of a reload, and of the calls of the node, when one of the workers in it dies."""

from __future__ import annotations

import signal
from collections.abc import Callable
from unittest import mock

import pytest

from tests.helpers import CLOCK, eventually
from tests.simulation.kernel import Killed
from tests.workers.operated import Operated, node
from tests.workers.reloads import begin_reload, reload, reloads
from tests.workers.wire_client import code_of
from workers.worker.worker import Worker

LONG_MS = 60_000

MOMENTS_S = [0.001 * number for number in range(20)]
"""Seconds from the signal: before the first fork, until after the last predecessor is gone."""


def kill(running: Operated, pid: int) -> None:
    running.kill(pid, signal.SIGKILL)


def assert_serves(running: Operated, workers: int) -> None:
    """Assert that the node has so many workers, who let clients in whose calls meet, whoever owns their topics."""
    running.wait_for_workers(workers, within=10.0)
    for slot in range(workers):
        receiver, sender = running.connect_to(slot), running.connect_to((slot + 1) % workers)
        for owner in range(workers):
            topic = receiver.topic_owned_by(owner)
            call = receiver.begin(":recv!", 5_000, topic)
            assert sender.answer(":send!", 5_000, topic, owner) is True
            assert receiver.result(call) == owner
        receiver.close()
        sender.close()
    assert running.node.process.status is None
    assert "Traceback" not in running.log()


VICTIMS: dict[str, Callable[[Operated], list[int]]] = {
    "predecessor": lambda running: running.workers()[:1],
    "sibling": lambda running: [pid for pid in running.workers() if pid == running.first_workers[1]],
    "successor": lambda running: running.workers()[2:],
    "all": lambda running: running.workers(),
}


@pytest.mark.parametrize("victims", VICTIMS.values(), ids=VICTIMS)
def test_whoever_dies_in_a_reload_and_when_the_node_serves_and_another_reload_is_done(
    victims: Callable[[Operated], list[int]],
) -> None:
    with node(workers=2, drain_timeout_s=1) as running:
        for number, moment_s in enumerate(MOMENTS_S):
            running.first_workers = running.workers()
            begin_reload(running)
            CLOCK.sleep(moment_s)
            for pid in victims(running):
                kill(running, pid)
            eventually(lambda done=number: len(reloads(running)) > done, 20.0)
            CLOCK.sleep(5.0)  # or too much would be logged at once
        assert_serves(running, 2)
        reload(running)
        assert_serves(running, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_successor_that_dies_as_soon_as_it_is_forked_leaves_all_as_it_was(workers: int) -> None:
    with node(workers=workers) as running:
        client = running.connect_to(0)
        waiting = client.begin(":recv!", LONG_MS, topic := client.topic_owned_by(0))
        client.answer(":ping")
        begin_reload(running)
        kill(running, running.next_fork())
        eventually(lambda: reloads(running) == ["reload-failed"])
        assert running.workers() == running.first_workers
        assert running.connect().answer(":send!", 5_000, topic, "value") is True
        assert client.result(waiting) == "value"
        assert_serves(running, workers)


# What makes a successor fail.


def test_a_node_whose_successors_fail_as_they_start_goes_on_with_the_workers_it_has() -> None:
    with node(workers=2, drain_timeout_s=1) as running:
        client = running.connect_to(0)
        waiting = client.begin(":recv!", LONG_MS, topic := client.topic_owned_by(0))
        client.answer(":ping")
        with mock.patch.object(Worker, "begin", side_effect=Killed):
            for failures in (1, 2):
                begin_reload(running)
                eventually(lambda count=failures: len(reloads(running)) == count)
        assert [failed["worker"] for failed in running.events("reload-failed")] == ["0", "0"]
        assert running.workers() == running.first_workers
        assert running.connect().answer(":send!", 1_000, topic, "value") is True
        assert client.result(waiting) == "value"
        client.close()
        reload(running)
        assert not {*running.workers()} & {*running.first_workers}


@pytest.mark.parametrize("before_s", [0.0, 2.0], ids=["then", "before"])
def test_a_reload_fails_also_where_there_is_no_worker_any_more_that_could_go_on(before_s: float) -> None:
    with node(workers=2, drain_timeout_s=1) as running:
        with mock.patch.object(Worker, "begin", side_effect=Killed):
            if before_s:
                kill(running, running.first_workers[0])
                CLOCK.sleep(before_s)  # it has died again and again, and the next one is put off
                begin_reload(running)
            else:
                begin_reload(running)
                running.next_fork()
                kill(running, running.first_workers[0])
            eventually(lambda: reloads(running) == ["reload-failed"])
        assert_serves(running, 2)
        reload(running)
        assert_serves(running, 2)


def test_a_reload_that_is_asked_for_during_one_that_fails_is_done_after_it() -> None:
    with node(workers=2, drain_timeout_s=60) as running:
        old = running.connect_to(0)
        begin_reload(running)
        running.wait_for_successor(0)
        begin_reload(running)
        old.answer(":ping")
        with mock.patch.object(Worker, "begin", side_effect=Killed):
            for client in running.clients:
                client.close()
            eventually(lambda: running.events("reload-failed"))
        eventually(lambda: reloads(running) == ["reloaded", "reload-failed"])
        assert len(running.events("reloading")) == 2
        assert_serves(running, 2)


def test_after_a_reload_that_failed_the_next_worker_has_the_settings_from_before() -> None:
    with node(workers=1, max_calls=1) as running:
        running.node.limit(max_calls=2)
        with mock.patch.object(Worker, "begin", side_effect=Killed):
            begin_reload(running)
            eventually(lambda: running.events("reload-failed"))
        kill(running, running.first_workers[0])
        client = running.connect()
        client.begin(":recv!", LONG_MS, "a")
        assert code_of(client.answer, ":recv!", LONG_MS, "b") == "busy"


def test_a_successor_that_hangs_before_it_serves_is_given_up_and_the_node_goes_on() -> None:
    with node(workers=2, drain_timeout_s=1, watchdog_s=2.0) as running:
        client = running.connect_to(0)
        begin_reload(running)
        new = running.next_fork()
        running.kill(new, signal.SIGSTOP)
        eventually(lambda: reloads(running), 10.0)
        assert running.is_gone(new)
        assert client.answer(":ping") is True
        assert_serves(running, 2)
