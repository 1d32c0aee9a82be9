"""Who has a place in a node, in every order in which workers come to serve, drain and die."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections import Counter

import pytest

from tests.helpers import eventually
from tests.workers.crews import LONG_S, crew
from workers.ipc import exits
from workers.ipc.control import Idle, Ready
from workers.process.crew import Crew
from workers.process.slot import Process, State
from workers.stats import metrics


def restarts(found: Crew, cause: str) -> int:
    return found._shared.node[metrics.RESTARTED.cell(cause)]


def wait_for_end(found: Crew, process: Process) -> None:
    def reaped() -> bool:
        found.reap()
        return process.state is State.GONE

    eventually(reaped)


def successor_of(found: Crew, slot: int = 0) -> Process:
    """Have one in a slot."""
    assert found.replace(found.slots[slot], LONG_S)
    successor = found.slots[slot].successor
    assert successor is not None
    return successor


@pytest.mark.parametrize("order", list(itertools.permutations(("worker", "successor", "outgoing"), 2)), ids=str)
@pytest.mark.parametrize("how", [0, 1, -9])
def test_whoever_dies_the_place_is_taken_by_one_worker_in_the_end(order: tuple[str, str], how: int) -> None:
    with crew(1) as (found, orders):
        [slot] = found.slots
        outgoing = slot.worker
        successor = successor_of(found)
        if "outgoing" in order:
            orders.say_and_hear(successor, Ready())
        roles = {"worker": slot.worker, "successor": slot.successor, "outgoing": outgoing}
        had_it = {outgoing, slot.worker}  # the place, or were the only ones to come to it
        for role in order:
            victim = roles[role]
            if victim is None or victim.state is State.GONE:
                continue
            if how < 0:
                os.kill(victim.pid, -how)
                wait_for_end(found, victim)
            else:
                orders.end(victim, how)
                found.reap()
            had_it |= {slot.worker or slot.successor} - {None}
        if slot.worker is None and slot.successor is None:
            assert slot.restart_at is not None, "else the place is empty for ever"
            found.turn(slot.restart_at)
        had_it |= {slot.worker or slot.successor}
        counted = {cause: number for cause in metrics.RESTARTS if (number := restarts(found, cause))}
        assert sum(counted.values()) == len(had_it) - 1, "each that was replaced is counted once"
        assert counted.keys() <= {"reload", "signal" if how < 0 else "status" if how else "ended"}
        for process in [*slot.processes()]:
            if process.state is State.STARTING:
                orders.say_and_hear(process, Ready())
        assert slot.worker is not None
        assert slot.worker.state is State.SERVING
        assert slot.successor is None
        assert slot.restart_at is None
        assert sum(live.slot == 0 for live in orders.shared.read().live()) == len([*slot.processes()])


@pytest.mark.parametrize("ready", [False, True])
def test_a_crew_that_drains_waits_for_no_successor(ready: bool) -> None:
    with crew(1) as (found, orders):
        [slot] = found.slots
        worker = slot.worker
        successor = successor_of(found)
        found.drain([])
        assert successor.state is State.STOPPING
        if ready:  # it had said so just before it was told to stop
            orders.say_and_hear(successor, Ready())
        assert slot.worker is worker
        assert worker is not None
        orders.say_and_hear(worker, Idle())
        assert found.is_idle


def test_a_successor_of_one_that_is_dead_drains_in_its_place() -> None:
    with crew(1) as (found, orders):
        [slot] = found.slots
        worker = slot.worker
        assert worker is not None
        successor = successor_of(found)
        orders.end(worker, 1)
        found.reap()
        found.drain([])
        orders.say_and_hear(successor, Ready())
        assert slot.worker is successor
        assert not found.is_idle
        orders.say_and_hear(successor, Idle())
        assert found.is_idle


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_only_one_that_served_and_that_others_have_killed_is_replaced_at_once_however_often(how: int) -> None:
    from_outside = how in (signal.SIGKILL, signal.SIGTERM)
    with crew(1) as (found, orders):
        slot = found.slots[0]
        for killed in range(1, 4):
            [worker] = found.processes()
            os.kill(worker.pid, how)
            wait_for_end(found, worker)
            assert slot.deaths == (0 if from_outside else killed)
            assert slot.restart_at is not None
            if from_outside:
                assert slot.restart_at <= time.monotonic()
            found.turn(slot.restart_at)
            orders.say_and_hear(next(found.processes()), Ready())
        found.turn(time.monotonic())
        [worker] = found.processes()
        worker.state = State.STARTING  # it has not said that it serves
        os.kill(worker.pid, how)
        wait_for_end(found, worker)
        assert slot.deaths == (1 if from_outside else 4)


@pytest.mark.parametrize("how", [0, 1, -9])
def test_a_place_whose_worker_dies_in_a_drain_does_not_wait_for_a_successor_that_was_told_to_stop(how: int) -> None:
    with crew(1) as (found, orders):
        [slot] = found.slots
        worker = slot.worker
        assert worker is not None
        successor = successor_of(found)
        found.drain([])
        if how < 0:
            os.kill(worker.pid, -how)
            wait_for_end(found, worker)
        else:
            orders.end(worker, how)
            found.reap()
        assert successor in found.processes(), "it is not reaped yet"
        assert slot.restart_at is not None, "else calls of siblings' clients have nobody there"
        found.turn(slot.restart_at)
        [heir] = {*found.processes()} - {successor}
        assert heir.state is State.DRAINING
        orders.end(successor, exits.OK)
        found.reap()
        assert [*found.processes()] == [heir]
        orders.say_and_hear(heir, Idle())
        assert found.is_idle
        found.stop()
        orders.end(heir, exits.OK)
        found.reap()
        assert found.is_over


# What is to be seen of them.


def seen(found: Crew) -> tuple[int, Counter[str]]:
    """Return how many serve, and how many there are in each state."""
    return found._shared.node[metrics.SERVING.at], Counter(live.state for live in found._shared.read().live())


def test_fewer_serve_while_a_node_drains() -> None:
    with crew(2) as (found, orders):
        assert seen(found) == (2, {"serving": 2})
        found.drain([])
        assert seen(found) == (0, {"draining": 2})
        first, second = found.processes()
        orders.say_and_hear(first, Idle())
        assert seen(found) == (0, {"draining": 1, "idle": 1})
        orders.end(second, 1)
        found.reap()
        assert seen(found) == (0, {"idle": 1})
        found.stop()
        assert seen(found) == (0, {"stopping": 1})


def test_one_that_is_dead_does_not_serve_nor_one_that_starts_in_its_place() -> None:
    with crew(2) as (found, orders):
        slot = found.slots[0]
        assert slot.worker is not None
        orders.end(slot.worker, 1)
        found.reap()
        assert seen(found) == (1, {"serving": 1})
        assert slot.restart_at is not None
        found.turn(slot.restart_at)
        assert seen(found) == (1, {"serving": 1, "starting": 1})
        assert slot.worker is not None
        orders.say_and_hear(slot.worker, Ready())
        assert seen(found) == (2, {"serving": 2})
