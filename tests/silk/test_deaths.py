"""Nodes in processes of their own: killed, stopped and continued, and many of them."""

from __future__ import annotations

import contextlib
import signal
import time

import psutil

from skywalker.errors import NoReply
from skywalker.silk import blocking, pace, visits
from tests.helpers import eventually, frozen, time_factor
from tests.silk.driving import keepalive
from tests.silk.processes import NodeProcess, met
from tests.silk.raw_peer import RawPeer

GIVEN_UP = pace.SILENT + 1
"""Keepalive periods from a node's last word until others give it up."""

SPARE = 20
"""Descriptors that a node may have at some moment besides, of sockets that are being closed."""


def start(count: int, closing: contextlib.ExitStack) -> list[NodeProcess]:
    processes = [closing.enter_context(NodeProcess()) for _ in range(count)]
    for process in processes[1:]:
        process.join(processes[0])
    met(processes, 5)
    return processes


def test_a_node_that_is_killed_is_gone_at_all_others_within_the_bound(closing: contextlib.ExitStack) -> None:
    victim, *others = start(4, closing)
    time.sleep(2 * keepalive())  # it has said something since it came
    victim.kill()
    killed_at = time.monotonic()
    met(others, GIVEN_UP * keepalive() / time_factor() + 1)
    assert time.monotonic() - killed_at > (GIVEN_UP - 1.2) * keepalive()
    for other in others:
        assert other.of(victim) == ["Joined", "Suspected", "Failed"]
        # Nobody else was taken for dead.
        assert "Failed" not in {what for each in others for what in other.of(each)}


def test_a_request_to_one_that_is_killed_meanwhile_ends_with_an_error(closing: contextlib.ExitStack) -> None:
    asker, victim = start(2, closing)
    with frozen(victim.popen):
        asker.order("request", of=victim.id, data="x")
        victim.kill()
    assert asker.answer().startswith(f"NoReply: {victim.id}")


def test_of_all_that_are_asked_those_that_die_are_errors_and_the_others_answer(closing: contextlib.ExitStack) -> None:
    processes = start(3, closing)
    node = closing.enter_context(blocking.Node(keepalive=keepalive()))
    node.join(processes[0].router)
    eventually(lambda: len(node.members) == 3 and all(info.messages for info in node.members.values()))
    victim, *others = processes
    with frozen(victim.popen):
        replies = []
        for reply in node.request_all("echo", "x"):
            replies.append(reply)
            if len(replies) == 2:
                victim.kill()
    assert {reply.node.id for reply in replies[:2]} == {other.id for other in others}
    assert [reply.data["data"] for reply in replies[:2]] == ["x", "x"]
    assert (replies[2].node.id, type(replies[2].error), len(replies)) == (victim.id, NoReply, 3)
    assert "has failed" in str(replies[2].error)


def test_half_of_the_nodes_may_be_killed_at_once(closing: contextlib.ExitStack) -> None:
    processes = start(6, closing)
    for process in processes[:3]:
        process.popen.kill()
    met(processes[3:], GIVEN_UP * keepalive() / time_factor() + 2)


def test_however_many_come_and_are_killed_few_descriptors_are_kept_for_them(closing: contextlib.ExitStack) -> None:
    (node,) = start(1, closing)
    process = psutil.Process(node.popen.pid)
    alone = process.num_fds()
    for _ in range(5):
        with contextlib.ExitStack() as peers:
            for _ in range(20):
                peer = peers.enter_context(RawPeer(keepalive_ms=round(1000 * keepalive())))
                peer.join(node.router)
                peer.send(node.router, "_connect", dest=node.id, data=peer.info)  # it has lived for a while
    eventually(lambda: [what for what, _ in node.events].count("Failed") == 100, 10)
    assert node.members() == {node.id: []}
    most = visits.MAX_WAITING + SPARE
    eventually(lambda: process.num_fds() - alone <= most)  # those of members are closed in a moment
    until = time.monotonic() + 3 * pace.VISIT_S
    while time.monotonic() < until:
        assert process.num_fds() - alone <= most
        time.sleep(0.05)


def test_a_node_that_restarts_elsewhere_is_another(closing: contextlib.ExitStack) -> None:
    processes = start(3, closing)
    processes[0].kill()
    processes[0] = closing.enter_context(NodeProcess())
    processes[0].join(processes[1])
    met(processes, 5)


def test_a_node_that_was_stopped_is_given_up_and_comes_back_by_itself(closing: contextlib.ExitStack) -> None:
    sleeper, *others = start(4, closing)
    with frozen(sleeper.popen):
        met(others, GIVEN_UP * keepalive() / time_factor() + 2)
    woke_at = time.monotonic()
    met([sleeper, *others], 5)
    print(f"back after {time.monotonic() - woke_at:.2f} s, {keepalive():g} s between signs of life")
    for other in others:
        told = other.of(sleeper)
        assert told[:3] == ["Joined", "Suspected", "Failed"]
        assert told[-1] in ("Joined", "Recovered")
        assert sleeper.ask("request", of=other.id, data=other.id)["data"] == other.id
        assert other.ask("request", of=sleeper.id, data=sleeper.id)["data"] == sleeper.id
    # And it stays so.
    time.sleep(3 * GIVEN_UP * keepalive())
    met([sleeper, *others], 1)
    assert [other.of(sleeper).count("Failed") for other in others] == [1, 1, 1]


def test_a_node_that_was_stopped_for_a_moment_is_suspected_and_stays(closing: contextlib.ExitStack) -> None:
    sleeper, other = start(2, closing)
    with frozen(sleeper.popen):
        eventually(lambda: other.of(sleeper) == ["Joined", "Suspected"])
    eventually(lambda: other.of(sleeper) == ["Joined", "Suspected", "Recovered"])
    time.sleep(2 * GIVEN_UP * keepalive())
    assert other.of(sleeper) == ["Joined", "Suspected", "Recovered"]
    assert "Failed" not in sleeper.of(other)


def test_all_nodes_may_sleep_at_once_and_know_each_other_when_they_wake_up(closing: contextlib.ExitStack) -> None:
    processes = start(4, closing)
    for process in processes:
        process.popen.send_signal(signal.SIGSTOP)
    time.sleep(2 * GIVEN_UP * keepalive())
    for process in processes:
        process.popen.send_signal(signal.SIGCONT)
    met(processes, 5)


def test_a_node_sees_all_this_without_taking_part_in_it(closing: contextlib.ExitStack) -> None:
    processes = start(2, closing)
    with blocking.Node(keepalive=keepalive()) as node:
        events = node.events()
        node.join(processes[0].router)
        eventually(lambda: len(node.members) == 2)
        processes[1].kill()
        eventually(lambda: len(node.members) == 1)
        told = [events.next(5) for _ in range(4)]
        assert [type(event).__name__ for event in told] == ["Joined", "Joined", "Suspected", "Failed"]
        assert told[3] is not None
        assert told[3].node.id == processes[1].id
    met(processes[:1], 1)


def test_50_nodes_that_join_at_once_all_know_each_other_within_seconds(closing: contextlib.ExitStack) -> None:
    period = 0.5 * time_factor()
    processes = [closing.enter_context(NodeProcess(count=5, period=period)) for _ in range(10)]
    began_at = time.monotonic()
    for process in processes:
        process.order("join", at=processes[0].router, within=10 * time_factor())
    assert [process.answer() for process in processes] == [None] * 10
    met(processes, 10)
    print(f"50 nodes: {time.monotonic() - began_at:.2f} s")
    time.sleep(4.5 * period)
    met(processes, 1)
    assert not [what for process in processes for what, _ in process.events if what == "Failed"]
