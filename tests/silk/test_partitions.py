"""Nodes on hosts of their own, between which lines are cut and healed, lose packets, or lead one way only."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from skywalker.silk import pace
from tests.cluster.network import Network
from tests.helpers import eventually, time_factor
from tests.silk.driving import keepalive
from tests.silk.processes import NodeProcess, met

PARTED_S = 3.0
"""Seconds until those that a cut has parted have given each other up; four keepalive periods, and some to spare."""

HEALED_S = 10.0
"""Seconds from the end of a cut until all know each other again: TCP and ZeroMQ have to connect anew."""


def start(net: Network, closing: contextlib.ExitStack, period: float = 0.0) -> list[NodeProcess]:
    processes = [closing.enter_context(NodeProcess(host, period=period)) for host in net.hosts]
    for process in processes[1:]:
        process.join(processes[0])
    met(processes, 5)
    return processes


def talk(one: NodeProcess, other: NodeProcess) -> None:
    """Have one be answered by another, once there is a connection; whatever is asked again is another request."""

    def is_answered() -> bool:
        said = f"{one.id} to {other.id} at {time.monotonic()}"
        answer: Any = one.ask("request", of=other.id, data=said)
        return bool(answer == {"pid": other.popen.pid, "data": said, "times": 1})

    eventually(is_answered, HEALED_S)


def test_each_side_of_a_cut_goes_on_and_both_are_one_again_when_it_is_healed(
    net: Network, closing: contextlib.ExitStack
) -> None:
    processes = start(net, closing)
    one, other = processes[:2], processes[2:]
    net.cut(net.hosts[:2], net.hosts[2:])
    for side in (one, other):
        met(side, PARTED_S)
        talk(*side)
    assert one[0].ask("request", of=other[0].id, data="x").startswith("NoSuchNode")
    net.heal()
    healed_at = time.monotonic()
    met(processes, HEALED_S)
    print(f"one again {time.monotonic() - healed_at:.2f} s after a cut")
    for process in one:
        for across in other:
            talk(process, across)
            talk(across, process)


def test_a_node_that_is_cut_off_alone_is_let_in_again(net: Network, closing: contextlib.ExitStack) -> None:
    alone, *others = start(net, closing)
    for _ in range(2):
        net.isolate(net.hosts[0])
        met(others, PARTED_S)
        met([alone], PARTED_S)
        net.heal()
        met([alone, *others], HEALED_S)
    talk(alone, others[0])


def test_a_cut_of_a_moment_makes_nobody_fail(net: Network, closing: contextlib.ExitStack) -> None:
    # TCP sends again after 200 ms and more what was lost: that has to be well within four periods.
    period = 0.25 * time_factor()
    processes = start(net, closing, period)
    for _ in range(2):
        net.isolate(net.hosts[0])
        time.sleep(period)
        net.heal()
        time.sleep(pace.SILENT * period)
    met(processes, HEALED_S)
    assert not [what for process in processes for what, _ in process.events if what == "Failed"]


def test_two_nodes_that_cannot_reach_each_other_while_all_others_can_are_brought_together_in_the_end(
    net: Network, closing: contextlib.ExitStack
) -> None:
    """The others say of both that they live, and nobody else is drawn into it."""
    processes = start(net, closing)
    net.cut(net.hosts[:1], net.hosts[1:2])
    one, other, *rest = processes
    eventually(lambda: "Failed" in one.of(other) and "Failed" in other.of(one), PARTED_S)
    for process in rest:
        talk(process, one)
        talk(process, other)
    net.heal()
    met(processes, HEALED_S)
    talk(one, other)


def test_a_line_that_leads_one_way_only_is_found_out(net: Network, closing: contextlib.ExitStack) -> None:
    processes = start(net, closing)
    net.cut(net.hosts[:1], net.hosts[1:], both_ways=False)
    met(processes[1:], PARTED_S)
    net.heal()
    met(processes, HEALED_S)


def test_a_request_outlives_a_cut_that_is_shorter_than_its_attempts(
    net: Network, closing: contextlib.ExitStack
) -> None:
    asker, other, *_ = start(net, closing)
    net.cut(net.hosts[:1], net.hosts[1:2])
    asker.order("request", of=other.id, data="through")
    time.sleep(2 * keepalive())
    net.heal()
    answer = asker.answer()
    # TCP may have been patient for longer than the request: then it has failed, and never was done twice.
    assert answer == {"pid": other.popen.pid, "data": "through", "times": 1} or answer.startswith("NoReply")
    assert asker.ask("request", of=other.id, data="after")["times"] == 1


def test_a_line_that_loses_packets_makes_nobody_fail(net: Network, closing: contextlib.ExitStack) -> None:
    processes = start(net, closing, period=0.25 * time_factor())
    net.worsen(net.hosts[0], delay_ms=10, loss_percent=5, jitter_ms=5)
    time.sleep(3 * time_factor())
    assert not [what for process in processes for what, _ in process.events if what == "Failed"]
    net.mend(net.hosts[0])
    met(processes, HEALED_S)
