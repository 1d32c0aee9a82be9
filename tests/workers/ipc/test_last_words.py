"""What a worker said just before it ended is heard, and does not take the supervisor with it."""

from __future__ import annotations

import os
import signal

from tests.workers.crews import LONG_S, crew
from tests.workers.processes import node
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


def test_a_node_that_is_told_to_end_while_its_workers_end_by_themselves_ends_in_good_order() -> None:
    for round in range(4):
        with node(workers=3, drain_timeout_s=60) as running:
            number = signal.SIGTERM if round % 2 else signal.SIGKILL
            pids = running.first_workers if round < 2 else running.first_workers[::-1]
            os.kill(pids[0], number)
            running.signal(signal.SIGTERM)
            for pid in pids[1:]:
                os.kill(pid, number)
            assert running.wait(within=5.0) == exits.OK
            assert "Traceback" not in running.log()
