"""What becomes of a node, and of the calls of its clients, when its processes die.

What waits at one that is killed meets all the same: so say the rules of simulated runs, most of which kill some.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import CLOCK, eventually, time_factor
from tests.workers import operated
from tests.workers.operated import Operated
from tests.workers.processes import FAULTY, is_gone, node, open_files
from tests.workers.pubsub_client import PubSubClient
from tests.workers.staged import simulated_nodes
from tests.workers.wire_client import ConnectionEnded, Refused, WireClient, call
from workers.ipc import exits
from workers.mesh.readiness import PATIENCE_S

# Replacement.


def test_a_worker_that_is_killed_is_replaced_at_once_and_its_successor_serves_who_waits_to_be_let_in() -> None:
    with operated.node(workers=2) as running:
        victim = running.first_workers[1]
        running.kill(victim, signal.SIGSTOP)
        waiting = [running.connect() for _ in range(100)]  # half of them come to it
        pings = [client.begin(":ping") for client in waiting]
        running.kill(victim, signal.SIGKILL)
        running.wait_for_workers(2, without=[victim], within=0.1)
        assert [client.result(ping) for client, ping in zip(waiting, pings, strict=True)] == [True] * 100
        assert running.connect_to(1).answer(":ping") is True


def test_the_first_death_costs_no_delay_and_each_further_one_twice_as_much_up_to_a_limit() -> None:
    delays = [exits.restart_delay(deaths) for deaths in range(1, 12)]
    assert delays[:5] == [0.0, 0.1, 0.2, 0.4, 0.8]
    assert delays[-1] == exits.MAX_DELAY_S
    assert delays == sorted(delays)


def test_a_worker_that_keeps_dying_is_replaced_more_and_more_slowly() -> None:
    promised = [exits.restart_delay(deaths) for deaths in range(1, 11)]
    with operated.node(workers=2) as running:
        victim, pauses = running.first_workers[0], []
        for _ in promised:
            killed_at = CLOCK.monotonic()
            running.kill(victim, signal.SIGSEGV)
            victim = running.next_fork()
            pauses.append(CLOCK.monotonic() - killed_at)
        assert pauses == pytest.approx(promised, abs=0.05)
        deaths = running.events("worker-ended")
        assert [float(death["restart_s"]) for death in deaths] == promised
        assert {death["worker"] for death in deaths} == {"0"}
        assert running.connect_to(0).answer(":ping") is True


def test_a_worker_that_others_kill_again_and_again_is_replaced_at_once() -> None:
    with operated.node(workers=1) as running:
        for _ in range(6):
            assert running.connect().answer(":ping") is True  # it serves
            running.kill(running.workers()[0], signal.SIGKILL)
        assert running.connect().answer(":ping") is True
        assert [death["restart_s"] for death in running.events("worker-ended")] == ["0.0"] * 6


def test_a_worker_whose_core_meets_a_bug_says_where_and_is_replaced_and_what_waits_elsewhere_meets() -> None:
    with node(workers=2, command=FAULTY) as running, running.connect_to(0) as victim, running.connect_to(1) as other:
        topic = other.topic_owned_by(0)
        waiting = other.begin(":recv!", 60_000, topic)
        other.wait_until(topic, receivers=1)
        victim.begin(":break")
        with pytest.raises(ConnectionEnded):
            victim.answer(":ping")
        running.wait_for_workers(2, without=running.first_workers[:1])
        with running.connect_to(0) as sender:
            assert sender.answer(":send!", 20_000, topic, "value") is True
        assert other.result(waiting) == "value"
        [ended] = running.events("worker-ended")
        assert (ended["worker"], ended["how"]) == ("0", '"signal SIGABRT"')
        assert re.search(
            r"^the core has failed at workers/core/\w+\.c:\d+: .* not watched$", running.log(), re.MULTILINE
        )
        assert "break_the_core" in running.log(), "the function that it was called from"


# Calls of connections to other workers.


@pytest.fixture
def four() -> Iterator[Operated]:
    with operated.node(workers=4) as running:
        yield running


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGHUP])
def test_sends_from_several_workers_keep_their_order_when_the_owner_has_a_successor(
    four: Operated, by: signal.Signals
) -> None:
    _, *clients = [four.connect_to(slot) for slot in range(4)]  # the first keeps the owner from its end
    topic = clients[0].topic_owned_by(0)
    waiting: list[tuple[WireClient, int]] = []

    def send(number: int) -> None:
        sender = clients[number % 3]
        waiting.append((sender, sender.begin(":send!", 30_000, topic, number)))

    for number in range(12):
        send(number)
        clients[0].wait_until(topic, senders=number + 1)
    owner = four.first_workers[0]
    if by == signal.SIGKILL:
        four.kill(owner, by)
    else:
        four.signal(by)
        four.next_fork()
        four.kill(owner, signal.SIGSTOP)  # before it gives back what waits there
    for number in range(12, 300):
        send(number)
        CLOCK.sleep(0.0001)
    if by == signal.SIGHUP:
        four.kill(owner, signal.SIGCONT)
        four.wait_for_successor(0)
    receiver = four.connect_to(3)
    receiver.wait_until(topic, senders=300)
    got = [receiver.answer(":recv!", 5_000, topic) for _ in range(300)]
    assert got[:12] == [*range(12)]
    for which in range(3):
        assert [number for number in got if number % 3 == which] == [*range(which, 300, 3)]
    assert [client.result(call) for client, call in waiting] == [True] * 300


def test_a_successor_waits_but_a_second_for_one_that_does_not_say_what_it_subscribes_to() -> None:
    with simulated_nodes(2) as nodes, nodes[1].hung_process(nodes[1].pids()[0]):
        node = nodes[0]
        node.kill(node.pids()[0])
        began = CLOCK.monotonic()
        with WireClient(PubSubClient.open(node.address, steer=(0, 2)).socket) as client:
            assert client.ask(":hello", 1, {"name": "x"})["worker"] == 0, "who it is may be said early"
            assert CLOCK.monotonic() - began < 0.1
            client.write(call(":ping", 2) + call(":ping", 3))
            assert not client.has_input(0.9 * PATIENCE_S)
            assert [client.reply()[1], client.reply()[1]] == [2, 3]
            assert CLOCK.monotonic() - began < PATIENCE_S + 0.1
        assert (
            f"event=not-waited-for process=worker worker=0 pid={node.pids()[-1]} workers=1 elsewhere=node-" in node.log
        )


# What only a kernel shows.


def test_a_signal_to_a_worker_just_born_is_neither_lost_nor_taken_for_the_supervisors() -> None:
    with node(workers=1) as running:
        [victim] = running.first_workers
        for _ in range(15):
            os.kill(victim, signal.SIGTERM)
            deadline = time.monotonic() + 5 * time_factor()
            # No pause: the moment after the fork is the point. One that never ends fails the test here.
            while (pids := running.workers()) in ([], [victim]):
                assert time.monotonic() < deadline, f"worker {victim} did not end, or was not replaced"
            victim = pids[-1]
        assert not running.events("draining")


def test_a_worker_that_dies_by_a_signal_that_has_no_name_is_replaced() -> None:
    with node(workers=1) as running:
        [victim] = running.first_workers
        os.kill(victim, nameless := signal.SIGRTMIN + 1)
        running.wait_for_workers(1, without=[victim])
        assert [each["how"] for each in running.events("worker-ended")] == [f'"signal {nameless}"']


def test_deaths_leave_no_descriptor_behind_in_the_supervisor_or_a_sibling() -> None:
    with node(workers=2) as running:
        sibling, victim = running.first_workers

        def files() -> list[int]:
            with running.connect_to(0) as first, running.connect_to(1) as second:
                # Over the link, so that is there; and what was closed before this is closed now.
                first.answer(":topic", first.topic_owned_by(1))
                second.answer(":topic", second.topic_owned_by(0))
                return [open_files(pid) for pid in (running.pid, sibling, victim)]

        before = files()
        for death in range(10):
            os.kill(victim, signal.SIGKILL if death % 2 else signal.SIGTERM)
            [victim] = {*running.wait_for_workers(2, without=[victim])} - {sibling}
        assert eventually(files) == before


def test_children_hear_no_signals_of_a_terminal_and_are_gone_with_their_supervisor_even_one_that_hangs() -> None:
    with node(workers=3, settings=["--join=127.0.0.1:1"]) as running:
        children = running.wait_for_workers(4)  # with its agent
        [agent] = {*children} - {*running.first_workers}
        of_a_terminal = {signal.SIGINT, signal.SIGHUP, signal.SIGPIPE}
        eventually(lambda: of_a_terminal | {signal.SIGTERM} <= _ignored(agent))
        supervisor = _sockets(running.pid)
        for pid in running.first_workers:
            assert of_a_terminal <= _ignored(pid)
            listeners = 1
            assert len(_sockets(pid) & supervisor) == listeners, "or it would not read that the supervisor has ended"
        os.kill(running.first_workers[1], signal.SIGSTOP)
        running.signal(signal.SIGKILL)
        eventually(lambda: all(map(is_gone, children)), within=1.0)


def _ignored(pid: int) -> set[int]:
    """Return the signals that a process ignores."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def _sockets(pid: int) -> set[str]:
    links = (os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
    return {link for link in links if link.startswith("socket:")}


def test_a_node_whose_workers_cannot_boot_ends_with_its_own_status_and_says_why(fault: Path) -> None:
    fault.touch()
    with node(workers=2, command=FAULTY, serves=False) as running:
        assert running.wait(within=10.0) == exits.BOOT
        assert "ended with status 1 before it served" in running.log()
        assert "no disk" in running.log()


def test_the_node_ends_when_the_program_that_started_it_does() -> None:
    with node(workers=2, drain_timeout_s=30) as running, running.connect() as client:
        waiting = client.begin(":recv!", 60_000, "topic")
        client.answer(":ping")
        running.parent.close()
        assert running.wait(within=3.0) == exits.OK
        assert all(map(is_gone, running.first_workers))
        with pytest.raises(Refused, match="draining"):
            client.result(waiting)
