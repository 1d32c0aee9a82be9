"""A node of a simulation as its operator sees it, with the interface of tests/workers/processes.py."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from typing import Any

from tests.helpers import eventually
from tests.workers.processes import connection_to, events_of
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import WireClient


class Operated:
    """One that runs, and may be harmed."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.pid = node.process.pid
        self.first_workers = node.first_pids
        self.clients: list[WireClient] = []

    def log(self) -> str:
        """Return all that was logged."""
        return self.node.log

    def events(self, name: str) -> list[dict[str, str]]:
        """Return the fields of the logged events of this name, oldest first."""
        return events_of(self.node.log, name)

    def workers(self) -> list[int]:
        """Return the pids of the workers that live, oldest first."""
        return self.node.pids()

    def wait_for_workers(self, count: int, *, without: Sequence[int] = (), within: float = 5.0) -> list[int]:
        """Wait until `count` workers live, none of them one of `without`, and return their pids."""

        def they() -> list[int]:
            pids = self.workers()
            return pids if len(pids) == count and not set(pids) & set(without) else []

        return eventually(they, within=within)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor, and to it alone."""
        self.node.signal(number)

    def kill(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a process."""
        process = self.node.stage.net.processes[pid]
        if number == signal.SIGSTOP:
            process.task.stop(float("inf"))
        elif number == signal.SIGCONT:
            process.task.go_on()
        else:
            process.signal(number)

    def is_gone(self, pid: int) -> bool:
        """Return whether a process has ended, even if nobody has asked for its status yet."""
        process = self.node.stage.net.processes.get(pid)
        return process is None or process.status is not None

    def wait(self, within: float) -> int:
        """Return the status with which the node ends; AssertionError if it does not in time."""
        return self.node.wait(within)

    def connect(self) -> WireClient:
        """Return a connection to whichever worker its source port chooses."""
        client = WireClient.open(self.node.address).say_hello()
        self.clients.append(client)
        return client

    def connect_to(self, slot: int) -> WireClient:
        """Return a connection to the worker in `slot`, which serves."""
        return connection_to(slot, self.connect)

    def lets_in(self) -> bool:
        """Return whether its doors are open."""
        try:
            self.connect().close()
        except ConnectionRefusedError:
            return False
        return True

    def next_fork(self) -> int:
        """Return the next process that it forks, as soon as there is one."""
        forks = self.node.process.forks
        assert self.node.stage.until(lambda: self.node.process.forks > forks, 10.0), self.log()
        return self.node.process.children[-1].pid

    def wait_for_successor(self, slot: int) -> None:
        """Wait until the worker of a slot as it was at the start owns nothing any more, and another lets clients in.

        What was connected before stays where it is.
        """
        before = self.first_workers[slot]
        eventually(lambda: self.node.pid_behind(self.connect_to(slot)) != before)


@contextlib.contextmanager
def node(*, workers: int = 2, drain_timeout_s: float = 10.0, **settings: Any) -> Iterator[Operated]:
    """Run a node in virtual time. The settings are those of embedded()."""
    with simulated(workers, harmed=True, drain_timeout_s=drain_timeout_s, **settings) as staged:
        found = Operated(staged)
        try:
            yield found
        except AssertionError as error:
            error.add_note(found.log())
            raise
        finally:
            for client in found.clients:
                client.close()
