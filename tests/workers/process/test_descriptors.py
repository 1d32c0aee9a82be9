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


class Short:
    """A node of two workers beside another node; one of its processes may be short of descriptors for a while."""

    def __init__(self, running: Node, asker: asking.Asker) -> None:
        self.running = running
        self.asker = asker
        self._seen = 0

    @contextmanager
    def of_descriptors(self, *pids: int, room: int | None = None) -> Iterator[int]:
        """Let processes have none but those that they have, or with so much `room`; yield the worker of a client.

        That one is served all the time.
        """
        self._seen = len(self.running.log)
        with connect(self.running.port) as client, ExitStack() as stack:
            slot = client.worker()
            for pid in pids:
                soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                limit = 3 if room is None else limit_with_room_for(pid, room)
                stack.callback(resource.prlimit, pid, resource.RLIMIT_NOFILE, (soft, hard))
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
            yield slot
            client.answer(":ping")

    def wait_for(self, event: str, count: int = 1) -> None:
        """Wait until something that this expression describes has happened so often since then."""
        eventually(lambda: len(re.findall(f"event={event}", self.running.log[self._seen :])) >= count, 20.0)

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


def test_a_supervisor_that_cannot_take_a_ring_follows_the_next_agent(short: Short, other: ToldNode) -> None:
    workers = short.running.worker_pids()
    with short.of_descriptors(short.running.pid):
        other.die()
        short.wait_for("no-descriptor .*message=Ring")
    short.wait_for_ring(1)
    assert short.running.worker_pids() == workers
