"""What a worker said just before it ended is heard, and does not take the supervisor with it."""

from __future__ import annotations

import signal

import pytest

from tests.workers.crews import LONG_S, crew
from tests.workers.staged import simulated
from workers.ipc import exits
from workers.ipc.control import Idle, Ready
from workers.process.slot import State


def test_a_worker_that_ended_before_it_was_heard_to_be_idle_is_the_last_to_be_waited_for() -> None:
    # By its parts: a supervisor loses this race against a worker too seldom.
    with crew(1) as (found, orders):
        [process] = found.processes()
        found.drain(outlived=False)
        orders.say(process, Idle())
        orders.end(process, exits.OK)
        found.reap()
        assert process.state is State.GONE
        assert [message for _, message in orders.heard] == [Ready(), Idle()]
        found.stop()
        assert found.is_over, "nobody waits for its successor"


def test_a_successor_that_ended_before_it_was_heard_to_be_ready_is_succeeded_and_its_predecessor_drains() -> None:
    with crew(1) as (found, orders):
        [slot] = found.slots
        before = slot.worker
        assert found.replace(slot, LONG_S)
        assert slot.successor is not None
        orders.say(slot.successor, Ready())
        orders.end(slot.successor, 1)
        found.reap()
        assert [*slot.processes()] == [slot.outgoing] == [before]
        assert slot.restart_at is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("order", [1, -1])
def test_a_node_that_is_told_to_end_while_its_workers_end_by_themselves_ends_in_good_order(
    number: signal.Signals, order: int
) -> None:
    with simulated(3, drain_timeout_s=60, harmed=True) as node:
        pids = node.pids()[::order]
        node.kill(pids[0], number)
        node.signal(signal.SIGTERM)
        for pid in pids[1:]:
            node.kill(pid, number)
        assert node.wait(within=5.0) == exits.OK
        assert "Traceback" not in node.log
