"""What becomes of a node, and of the calls of its clients, when its processes die."""

from __future__ import annotations

import itertools
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.admin import asking
from tests.cluster.clusters import Cluster
from tests.helpers import eventually, time_factor
from tests.workers.processes import Node, is_gone, node, open_files
from tests.workers.wire_client import TIMED_OUT, Refused, WireClient
from workers.ipc import exits

BROKEN = Path(__file__).parents[1] / "broken_node.py"


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def pid_of(running: Node, slot: int) -> int:
    """Return the pid of the worker in `slot` as long as none was replaced."""
    return running.first_workers[slot]


# Replacement.


def test_a_worker_that_is_killed_is_replaced_within_a_second_and_its_successor_serves() -> None:
    with node(workers=2) as running:
        victim = pid_of(running, 1)
        kill(victim)
        running.wait_for_workers(2, without=[victim], within=1.0)
        with running.connect_to(1) as client:
            assert client.answer(":ping") is True


def test_the_first_death_costs_no_delay_and_each_further_one_twice_as_much_up_to_a_limit() -> None:
    delays = [exits.restart_delay(deaths) for deaths in range(1, 12)]
    assert delays[:5] == [0.0, 0.1, 0.2, 0.4, 0.8]
    assert delays[-1] == exits.MAX_DELAY_S
    assert delays == sorted(delays)


def test_a_worker_that_keeps_dying_is_replaced_more_and_more_slowly() -> None:
    with node(workers=2) as running:
        victim, pauses = pid_of(running, 0), []
        for _ in range(4):
            before = running.workers()  # its successor may be there at once
            os.kill(victim, signal.SIGSEGV)
            killed_at = time.monotonic()
            victim = (set(running.wait_for_workers(2, without=[victim])) - set(before)).pop()
            pauses.append(time.monotonic() - killed_at)
        deaths = eventually(lambda: running.events("worker-ended"))
        assert [float(death["restart_s"]) for death in deaths] == [0.0, 0.1, 0.2, 0.4]
        assert [death["worker"] for death in deaths] == ["0"] * 4
        for pause, promised in zip(pauses, [0.0, 0.1, 0.2, 0.4], strict=True):
            assert promised <= pause < promised + 1.0 * time_factor()
        with running.connect_to(0) as client:
            assert client.answer(":ping") is True


def test_a_worker_that_others_kill_again_and_again_is_replaced_at_once() -> None:
    with node(workers=1) as running:
        for _ in range(6):
            with running.connect() as client:
                assert client.answer(":ping") is True  # it serves
            kill(running.workers()[0])
        with running.connect() as client:
            assert client.answer(":ping") is True
        deaths = eventually(lambda: found if len(found := running.events("worker-ended")) == 6 else [])
        assert [death["restart_s"] for death in deaths] == ["0.0"] * 6


def test_connections_in_the_accept_queue_of_a_worker_that_is_killed_are_served_by_its_successor() -> None:
    with node(workers=1) as running:
        victim = pid_of(running, 0)
        os.kill(victim, signal.SIGSTOP)
        clients = [running.connect() for _ in range(100)]
        pings = [client.begin(":ping") for client in clients]
        kill(victim)
        assert [client.result(ping) for client, ping in zip(clients, pings, strict=True)] == [True] * 100


def test_a_node_survives_the_death_of_all_its_workers_at_once() -> None:
    with node(workers=4) as running:
        # Several deaths in one turn of the supervisor are the point, and when its turns are is chance.
        for _ in range(5):
            victims = running.wait_for_workers(4, within=15.0)
            for pid in victims:
                kill(pid)
            running.wait_for_workers(4, without=victims, within=15.0)
        assert running.process.poll() is None
        with running.connect_to(3) as client:
            assert client.answer(":ping") is True


def test_a_signal_to_a_worker_just_born_is_neither_lost_nor_taken_for_the_supervisors() -> None:
    with node(workers=1) as running:
        victim = pid_of(running, 0)
        for _ in range(30):
            os.kill(victim, signal.SIGTERM)
            deadline = time.monotonic() + 5 * time_factor()
            # No pause: the moment after the fork is the point. One that never ends fails the test here.
            while (pids := running.workers()) in ([], [victim]):
                assert time.monotonic() < deadline, f"worker {victim} did not end, or was not replaced"
            victim = pids[-1]
        assert not running.events("draining")


def test_a_node_survives_the_lack_of_descriptors_for_a_new_worker() -> None:
    with node(workers=2) as running, running.connect_to(1) as client:
        victim = pid_of(running, 0)
        soft, hard = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
        # The death makes room for one descriptor, and a worker's channel takes two.
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (open_files(running.pid) - 1, hard))
        kill(victim)
        eventually(lambda: running.events("cannot-fork"))
        assert client.answer(":ping") is True
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (soft, hard))
        running.wait_for_workers(2, without=[victim])
        with running.connect_to(0) as other:
            assert other.answer(":ping") is True


@contextmanager
def at_most(pid: int, files: int) -> Iterator[None]:
    """Let a process have no descriptors from this number on, but for those that it has."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def limit_with_room_for(pid: int, files: int) -> int:
    """Return the limit that leaves a process room for so many more descriptors."""
    taken = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    free = (fd for fd in itertools.count() if fd not in taken)
    return next(itertools.islice(free, files, None))


def answers_for(asker: asking.Asker, workers: int) -> bool:
    """Return whether an agent is there, and all workers answer it."""
    topics = asker.json("/api/topics")
    live = asker.json("/api/state")["workers"]
    return not topics["silent"] and len([each for each in live if each["serving"]]) == workers


# The death of the agent makes room for one. Its channel takes two; with those, a link to a worker takes two more.
@pytest.mark.parametrize(("room", "event"), [(0, "cannot-fork"), (1, "cannot-link")])
def test_a_supervisor_without_descriptors_lives_and_has_an_agent_that_all_answer_once_there_are_some(
    room: int, event: str
) -> None:
    with asking.node(workers=2) as (running, asker), running.connect() as client:
        workers = running.worker_pids()
        with at_most(running.pid, limit_with_room_for(running.pid, room)):
            kill(asking.agent_of(running))
            eventually(lambda: re.search(rf"event={event} .*process=agent", running.log))
            assert client.topic("topic")
            limited = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
        # An agent that was forked meanwhile has that limit for good, which may be too few to answer with.
        agent = eventually(lambda: asking.agent_of(running))
        if resource.prlimit(agent, resource.RLIMIT_NOFILE) == limited:
            resource.prlimit(agent, resource.RLIMIT_NOFILE, resource.prlimit(running.pid, resource.RLIMIT_NOFILE))
        eventually(lambda: answers_for(asker, 2), 10.0)
        assert running.worker_pids() == workers
        assert "Traceback" not in running.log


def test_a_worker_without_descriptors_that_an_agent_asks_for_lives_and_answers_the_next_one() -> None:
    with asking.node(workers=2) as (running, asker), running.connect() as client:
        workers = running.worker_pids()
        with at_most(workers[0], 3), at_most(workers[1], 3):
            kill(asking.agent_of(running))
            # What the first agent said of the ring may be among what they could not take, too.
            eventually(lambda: len(re.findall(r"event=no-descriptor .*message=Inspect", running.log)) == 2)
            assert client.topic("topic")
        eventually(lambda: asker.ask("/ready")[0] == 200)
        kill(asking.agent_of(running))
        eventually(lambda: answers_for(asker, 2), 10.0)
        assert running.worker_pids() == workers


@pytest.mark.parametrize("who", ["worker", "supervisor"])
def test_a_process_without_descriptors_that_is_told_of_a_new_ring_lives_and_follows_a_later_one(who: str) -> None:
    with Cluster(2, workers=1) as cluster:
        cluster.start()
        leaves, stays = cluster.nodes
        [worker] = stays.worker_pids()
        pid = {"worker": worker, "supervisor": stays.pid}[who]
        with at_most(pid, 3):
            leaves.kill()
            eventually(lambda: "event=no-descriptor" in stays.log, 20.0)
            assert "message=Ring" in stays.log
        if who == "supervisor":
            eventually(lambda: stays.sees() == {stays.name}, 10.0)
        cluster.revive(leaves)
        cluster.settle()
        assert stays.worker_pids() == [worker]
        assert "Traceback" not in stays.log


def test_fifty_deaths_leave_no_descriptor_behind_in_the_supervisor_or_a_sibling() -> None:
    with node(workers=2) as running:
        sibling, victim = running.first_workers

        def files() -> list[int]:
            with running.connect_to(0) as first, running.connect_to(1) as second:
                # Over the link, so that is there; and what was closed before this is closed now.
                first.answer(":topic", first.topic_owned_by(1))
                second.answer(":topic", first.topic_owned_by(0))
                return [open_files(pid) for pid in (running.pid, sibling, victim)]

        before = files()
        for death in range(50):
            # An end in good order, every other time, keeps the delay of the next replacement short.
            os.kill(victim, signal.SIGKILL if death % 2 else signal.SIGTERM)
            pids = running.wait_for_workers(2, without=[victim])
            assert sibling in pids
            victim = next(pid for pid in pids if pid != sibling)
        assert eventually(files) == before


# Calls of connections to other workers.


@pytest.fixture
def four() -> object:
    with node(workers=4) as running:
        yield running


def test_a_receive_that_waits_at_a_worker_that_is_killed_still_meets(four: Node) -> None:
    with four.connect_to(0) as receiver, four.connect_to(1) as sender:
        topic = receiver.topic_owned_by(2)
        waiting = receiver.begin(":recv!", 30_000, topic)
        sender.wait_until(topic, receivers=1)
        kill(pid_of(four, 2))
        assert sender.answer(":send!", 30_000, topic, "value") is True
        assert receiver.result(waiting) == "value"


def test_a_send_that_waits_at_a_worker_that_is_killed_still_meets(four: Node) -> None:
    with four.connect_to(0) as receiver, four.connect_to(1) as sender:
        topic = receiver.topic_owned_by(2)
        waiting = sender.begin(":send!", 30_000, topic, "value")
        receiver.wait_until(topic, senders=1)
        kill(pid_of(four, 2))
        assert receiver.answer(":recv!", 30_000, topic) == "value"
        assert sender.result(waiting) is True


def test_takers_of_a_group_that_wait_at_a_worker_that_is_killed_share_what_comes_afterwards(four: Node) -> None:
    with four.connect_to(0) as first, four.connect_to(1) as second, four.connect_to(3) as sender:
        topic = first.topic_owned_by(2)
        waiting = [
            (first, first.begin(":take!", 30_000, topic, "g")),
            (second, second.begin(":take!", 30_000, topic, "g")),
        ]
        sender.wait_until(topic, takers={"g": 2})
        kill(pid_of(four, 2))
        sender.wait_until(topic, takers={"g": 2})
        assert [sender.answer(":send!", 5_000, topic, value) for value in "ab"] == [True, True]
        assert sorted(client.result(call) for client, call in waiting) == ["a", "b"]


def test_sends_from_several_workers_keep_their_order_after_the_death_of_the_owner(four: Node) -> None:
    clients = [four.connect_to(slot) for slot in (0, 1, 3)]
    topic = clients[0].topic_owned_by(2)
    waiting: list[tuple[WireClient, int]] = []
    for number in range(12):
        sender = clients[number % 3]
        waiting.append((sender, sender.begin(":send!", 30_000, topic, number)))
        clients[0].wait_until(topic, senders=number + 1)
    kill(pid_of(four, 2))
    clients[0].wait_until(topic, senders=12)
    assert [clients[1].answer(":recv!", 5_000, topic) for _ in range(12)] == list(range(12))
    assert [client.result(call) for client, call in waiting] == [True] * 12


def test_a_call_that_is_issued_again_keeps_its_deadline(four: Node) -> None:
    with four.connect_to(0) as client:
        topic = client.topic_owned_by(2)
        started = time.monotonic()
        waiting = client.begin(":recv!", 1_000, topic)
        client.wait_until(topic, receivers=1)
        kill(pid_of(four, 2))
        assert client.result(waiting) == TIMED_OUT
        assert 1.0 <= time.monotonic() - started < 1.0 + 0.1 * time_factor()


def test_a_call_may_be_made_and_cancelled_while_the_owner_of_its_topic_is_dead(four: Node) -> None:
    with four.connect_to(0) as client:
        topic = client.topic_owned_by(2)
        for _ in range(3):  # the third successor comes only after a pause
            victim = four.workers()
            kill(pid := _worker_of(four, 2))
            waiting = client.begin(":recv!", 30_000, topic)
            assert client.answer(":cancel", waiting) is True
            four.wait_for_workers(4, without=[pid])
            assert victim != four.workers()
        client.wait_until(topic, receivers=0)


def _worker_of(running: Node, slot: int) -> int:
    """Return the pid of the worker in `slot`, which may be a successor: the one that is not among the first."""
    first = running.first_workers[slot]
    return first if not is_gone(first) else (set(running.workers()) - set(running.first_workers)).pop()


def test_a_hung_worker_delays_nobody_else(four: Node) -> None:
    hung = pid_of(four, 2)
    with four.connect_to(0) as receiver, four.connect_to(1) as sender:
        os.kill(hung, signal.SIGSTOP)
        try:
            for owner in (0, 1, 3):
                topic = receiver.topic_owned_by(owner)
                waiting = receiver.begin(":recv!", 5_000, topic)
                assert sender.answer(":send!", 5_000, topic, owner) is True
                assert receiver.result(waiting) == owner
            started = time.monotonic()
            with pytest.raises(Refused, match="unknown-outcome"):
                sender.answer(":send!", 300, sender.topic_owned_by(2), "value")
            assert 0.3 <= time.monotonic() - started < 0.3 + 0.1 * time_factor()
        finally:
            os.kill(hung, signal.SIGCONT)


# The supervisor's own end.


def test_a_supervisor_that_is_killed_takes_all_its_workers_with_it_even_one_that_hangs() -> None:
    with node(workers=3) as running:
        os.kill(pid_of(running, 1), signal.SIGSTOP)
        running.signal(signal.SIGKILL)
        eventually(lambda: all(map(is_gone, running.first_workers)), within=2.0)


def test_no_worker_holds_the_supervisors_end_of_its_channel() -> None:
    """It would never read an end when the supervisor dies."""
    with node(workers=3) as running:
        supervisor = _sockets(running.pid)
        for pid in running.workers():
            listeners = 1
            assert len(_sockets(pid) & supervisor) == listeners


def _sockets(pid: int) -> set[str]:
    links = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return {link for link in links if link.startswith("socket:")}


def test_a_node_whose_worker_cannot_boot_ends_with_its_own_status_and_says_why() -> None:
    with node(workers=2, command=(sys.executable, str(BROKEN)), serves=False) as running:
        assert running.wait(within=10.0) == exits.BOOT
        assert "worker 1 ended with status 1 before it served" in running.log()
        assert "no disk" in running.log()


def test_the_node_ends_when_the_program_that_started_it_does() -> None:
    with node(workers=2, drain_timeout_s=30) as running, running.connect() as client:
        waiting = client.begin(":recv!", 60_000, "topic")
        client.answer(":ping")
        running.parent.close()
        assert running.wait(within=3.0) == exits.OK
        assert all(map(is_gone, running.first_workers))
        with pytest.raises(Exception, match="draining"):
            client.result(waiting)
