"""What a worker said just before it ended is heard, and does not take the supervisor with it."""

from __future__ import annotations

import math
import os
import selectors
import signal
import socket

from skywalker.config import Config
from tests.workers.processes import node
from workers import exits
from workers.control import Channel, Idle
from workers.lifecycle import Event, State
from workers.slot import Slot
from workers.supervisor import Supervisor


def test_a_worker_that_ended_before_it_was_heard_to_be_idle_is_the_last_to_be_waited_for() -> None:
    # By its parts: a supervisor loses this race against a worker too seldom.
    pid = os.fork()
    if not pid:
        os._exit(exits.OK)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    ours, theirs = Channel.pair()
    theirs.send(Idle())
    theirs.close()
    with socket.socket() as listener, selectors.DefaultSelector() as selector:
        slot = Slot(0, listener)
        slot.pid, slot.channel, slot.state = pid, ours, State.STARTING
        slot.happened(Event.DRAIN)
        supervisor = Supervisor(Config())
        supervisor._slots, supervisor._selector, supervisor._draining = [slot], selector, True
        supervisor._stop_at = math.inf
        supervisor._reap()
        supervisor._turn()
        assert slot.state is State.GONE
        assert slot.restart_at is None, "nobody waits for its successor"


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
