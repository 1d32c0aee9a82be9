"""Processes of a node that have no descriptors left: they live, do what they can, and the rest once there are some."""

from __future__ import annotations

import itertools
import os
import re
import resource
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from skywalker.embedding import Node
from tests.admin import asking
from tests.helpers import eventually
from tests.workers.processes import connect
from tests.workers.told_node import ToldNode


def limit_with_room_for(pid: int, files: int) -> int:
    """Return the limit that leaves a process room for so many more descriptors."""
    taken = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
    return next(itertools.islice((fd for fd in itertools.count() if fd not in taken), files, None))


def limit(pid: int, files: int) -> int:
    """Have a process open no descriptor from this number on; return the limit that it had."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, hard))
    return soft


class Short:
    """A node of two workers beside another node; one of its processes may be short of descriptors for a while."""

    def __init__(self, running: Node, asker: asking.Asker) -> None:
        self.running = running
        self.asker = asker
        self._seen = 0

    def look_from_here(self) -> None:
        """Have what is logged from now on be what has_seen() and wait_for() look at."""
        self._seen = len(self.running.log)

    @contextmanager
    def of_descriptors(self, *pids: int, room: int | None = None) -> Iterator[int]:
        """Let processes have none but those that they have, or with so much `room`; yield the worker of a client.

        That one is served all the time. A worker has what it keeps back besides that room; without any, it has not
        even that.
        """
        self.look_from_here()
        with connect(self.running.port) as client, ExitStack() as stack:
            slot = client.worker()
            for pid in pids:
                before = limit(pid, 3 if room is None else limit_with_room_for(pid, room))
                stack.callback(limit, pid, before)
            yield slot
            client.answer(":ping")

    def wait_for(self, event: str, count: int = 1) -> None:
        """Wait until something that this expression describes has happened so often since then."""
        eventually(lambda: self.has_seen(event) >= count, 20.0)

    def has_seen(self, event: str) -> int:
        """Return how often it has."""
        return len(re.findall(f"event={event}", self.running.log[self._seen :]))

    def agent(self) -> int:
        """Return its agent, once there is one."""
        return eventually(lambda: asking.agent_of(self.running), 10.0)

    def wait_until_all_answer(self) -> None:
        """Wait until there are an agent and two workers, and they answer it."""

        def they_do() -> bool:
            live = self.asker.json("/api/state")["workers"]
            return not self.asker.json("/api/topics")["silent"] and sum(each["serving"] for each in live) == 2

        eventually(they_do, 15.0)

    def wait_for_ring(self, nodes: int) -> None:
        """Wait until both workers go by a ring of so many nodes."""
        met = set()

        def they_do() -> bool:
            with connect(self.running.port) as client:
                if len(client.answer(":nodes")["nodes"]) == nodes:
                    met.add(client.worker())
            return len(met) == 2

        eventually(they_do, 15.0)


@pytest.fixture(scope="module")
def other() -> Iterator[ToldNode]:
    with ToldNode() as other:
        yield other


@pytest.fixture(scope="module")
def short(other: ToldNode) -> Iterator[Short]:
    with asking.node(workers=2, join=str(other.address), drain_timeout_s=0) as (running, asker):
        short = Short(running, asker)
        short.wait_for_ring(2)
        yield short
        short.wait_until_all_answer()
        assert "Traceback" not in running.log


def test_without_room_for_a_worker_the_others_serve_until_there_is(short: Short) -> None:
    workers = short.running.worker_pids()
    with short.of_descriptors(short.running.pid):
        os.kill(short.running.pid, signal.SIGHUP)
        short.wait_for("cannot-fork")
        short.wait_for("reload-failed")
        assert short.running.worker_pids() == workers
    short.wait_until_all_answer()  # its agent was replaced, too
    with short.of_descriptors(short.running.pid) as slot:
        victim = workers[1 - slot]
        os.kill(victim, signal.SIGKILL)
        short.wait_for("cannot-fork process=supervisor worker=")
    eventually(lambda: len({*short.running.worker_pids()} - {victim}) == 2)
    short.wait_until_all_answer()


# The death of the agent makes room for one. Its channel takes two; with those, a link to a worker takes two more.
@pytest.mark.parametrize(("room", "event"), [(0, "cannot-fork"), (1, "cannot-link")])
def test_without_room_for_an_agent_or_its_links_there_are_some_once_there_is(
    short: Short, room: int, event: str
) -> None:
    supervisor, workers = short.running.pid, short.running.worker_pids()
    with short.of_descriptors(supervisor, room=room):
        os.kill(short.agent(), signal.SIGKILL)
        short.wait_for(rf"{event} .*process=agent")
        limited = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
    # An agent that was forked meanwhile has that limit for good, which may be too few to answer with.
    agent = short.agent()
    if resource.prlimit(agent, resource.RLIMIT_NOFILE) == limited:
        resource.prlimit(agent, resource.RLIMIT_NOFILE, resource.prlimit(supervisor, resource.RLIMIT_NOFILE))
    short.wait_until_all_answer()
    assert short.running.worker_pids() == workers


def test_a_worker_that_cannot_take_what_an_agent_sends_answers_the_next_one(short: Short) -> None:
    workers = short.running.worker_pids()
    with short.of_descriptors(*workers):
        os.kill(short.agent(), signal.SIGKILL)
        short.wait_for("no-descriptor .*message=Inspect", 2)
        short.wait_for("no-descriptor .*message=Ring", 2)
    os.kill(short.agent(), signal.SIGKILL)
    short.wait_until_all_answer()
    short.wait_for_ring(2)
    assert short.running.worker_pids() == workers


def test_a_worker_that_cannot_take_a_ring_follows_it_once_it_can(short: Short, other: ToldNode) -> None:
    workers = short.running.worker_pids()
    with ToldNode("late") as late:
        with short.of_descriptors(*workers):
            other.ring = [other.member, late.member]
            other.push(version="with the late one")
            short.wait_for("no-descriptor .*message=Ring", 2)
        short.wait_for_ring(3)
    short.wait_for_ring(2)
    assert short.running.worker_pids() == workers


def test_workers_that_have_none_left_for_clients_take_what_their_supervisor_passes(short: Short) -> None:
    workers = short.running.worker_pids()
    short.look_from_here()
    for pid in workers:
        limit(pid, limit_with_room_for(pid, 0))
    os.kill(short.agent(), signal.SIGKILL)
    short.wait_for("serving-admin")
    os.kill(short.running.pid, signal.SIGHUP)
    short.wait_for("reloaded")
    assert not {*workers} & {*short.running.worker_pids()}
    short.wait_until_all_answer()
    for event in ("no-descriptor", "worker-ended", "worker-draining"):
        assert not short.has_seen(event)


def test_one_that_cannot_be_linked_to_a_sibling_makes_way_for_another(short: Short) -> None:
    workers = short.running.worker_pids()
    victim, witness = workers
    short.look_from_here()
    limit(witness, 3)
    os.kill(victim, signal.SIGKILL)
    short.wait_for(f"no-descriptor .*pid={witness} message=Connect")
    short.wait_for(f"worker-draining .*pid={witness} ")
    eventually(lambda: len({*short.running.worker_pids()} - {*workers}) == 2, 20.0)
    short.wait_until_all_answer()
    assert "Traceback" not in short.running.log


def test_a_supervisor_that_cannot_take_a_ring_follows_the_next_agent(short: Short, other: ToldNode) -> None:
    workers = short.running.worker_pids()
    with short.of_descriptors(short.running.pid):
        other.die()
        short.wait_for("no-descriptor .*message=Ring")
    short.wait_for_ring(1)
    assert short.running.worker_pids() == workers
