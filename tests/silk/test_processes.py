"""Nodes in processes of their own, one of which stands still and one of which is killed: what else is simulated."""

from __future__ import annotations

import contextlib

import psutil
import pytest

from skywalker.silk import pace, visits
from tests.cluster import network
from tests.helpers import eventually, frozen, time_factor
from tests.silk.driving import keepalive
from tests.silk.processes import NodeProcess, met
from tests.silk.raw_peer import RawPeer

REAL = True
"""What only real sockets, threads or clocks show."""

GIVEN_UP = pace.SILENT + 1
"""Keepalive periods from a node's last word until others give it up."""

HEALED_S = 10.0
"""Seconds from the end of a cut until all know each other again: TCP and ZeroMQ have to connect anew."""

SPARE = 20
"""Descriptors that a node may have at some moment besides, of sockets that are being closed."""


def test_one_that_stands_still_comes_back_and_one_that_is_killed_does_not(closing: contextlib.ExitStack) -> None:
    sleeper, victim, other = processes = [closing.enter_context(NodeProcess()) for _ in range(3)]
    for process in processes[1:]:
        process.join(sleeper)
    met(processes, 5)
    with frozen(sleeper.popen):
        met([victim, other], GIVEN_UP * keepalive() / time_factor() + 2)
    met(processes, 5)
    assert other.of(sleeper)[:3] == ["Joined", "Suspected", "Failed"]
    assert sleeper.ask("request", of=other.id, data="x")["data"] == "x"
    with frozen(victim.popen):
        other.order("request", of=victim.id, data="y")
        victim.kill()
    assert other.answer().startswith(f"NoReply: {victim.id}")
    met([sleeper, other], GIVEN_UP * keepalive() / time_factor() + 2)


def test_the_two_sides_of_a_cut_between_hosts_are_one_again_when_it_is_healed(closing: contextlib.ExitStack) -> None:
    network.require()
    with network.Network(2) as net:
        one, other = processes = [closing.enter_context(NodeProcess(host)) for host in net.hosts]
        other.join(one)
        met(processes, 5)
        net.cut(net.hosts[:1], net.hosts[1:])
        for process in processes:
            met([process], 3)
        net.heal()
        met(processes, HEALED_S)


def test_however_many_come_and_are_killed_few_descriptors_are_kept_for_them(closing: contextlib.ExitStack) -> None:
    node = closing.enter_context(NodeProcess())
    process = psutil.Process(node.popen.pid)
    alone = process.num_fds()
    for _ in range(2):
        with contextlib.ExitStack() as peers:
            for _ in range(30):
                peer = peers.enter_context(RawPeer(keepalive_ms=round(1000 * keepalive())))
                peer.join(node.router)
                peer.send(node.router, "_connect", dest=node.id, data=peer.info)  # it has lived for a while
    eventually(lambda: [what for what, _ in node.events].count("Failed") == 60, 10)
    assert node.members() == {node.id: []}
    eventually(lambda: process.num_fds() - alone <= visits.MAX_WAITING + SPARE)  # those of members are closed soon


@pytest.mark.timeout(120)
def test_30_nodes_that_join_at_once_all_know_each_other_within_seconds(closing: contextlib.ExitStack) -> None:
    period = 0.5 * time_factor()
    processes = [closing.enter_context(NodeProcess(count=10, period=period)) for _ in range(3)]
    for process in processes:
        process.order("join", at=processes[0].router, within=10 * time_factor())
    assert [process.answer() for process in processes] == [None] * 3
    met(processes, 10)
