"""A node as its operator sees it, a process with children, and a client that says exactly what it is told to.

Everything that starts here ends with its `with` block, whatever became of it: the node has its own process group,
and a socket that ends it if this program dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from tests.helpers import eventually, time_factor, written_to
from tests.workers.wire_client import WireClient

FAULTY = (sys.executable, str(Path(__file__).with_name("faulty_node.py")))
"""The command of a node whose workers can be told to fail; see there, and the fixture `fault`."""


class Node:
    """A running node: its processes, its port and what it logged."""

    def __init__(self, process: subprocess.Popen[bytes], parent: socket.socket, log: IO[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.parent = parent
        self._log = log
        self.port = 0
        self.first_workers: list[int] = []
        self.clients: list[WireClient] = []  # closed at the end at the latest

    def wait_until_it_serves(self) -> None:
        """Wait for the line that says where; raise AssertionError with the log if the node ends instead."""
        self.parent.settimeout(20 * time_factor())
        line = self.parent.makefile("rb").readline()
        assert line, f"the node ended with status {self.process.wait()}:\n{self.log()}"
        ready = json.loads(line)
        self.port, self.first_workers = ready["port"], ready["workers"]

    def log(self) -> str:
        """Return all that the node's processes wrote to standard error."""
        return written_to(self._log)

    def events(self, name: str) -> list[dict[str, str]]:
        """Return the fields of the logged events of this name, oldest first."""
        return events_of(self.log(), name)

    def workers(self) -> list[int]:
        """Return the pids of the workers that live, oldest first."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as children:
            return [pid for pid in map(int, children.read().split()) if not is_gone(pid)]

    def wait_for_workers(self, count: int, *, without: Sequence[int] = (), within: float = 5.0) -> list[int]:
        """Wait until `count` workers live, none of them one of `without`, and return their pids."""

        def they() -> list[int]:
            pids = self.workers()
            return pids if len(pids) == count and not set(pids) & set(without) else []

        return eventually(they, within=within)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor, and to it alone."""
        self.process.send_signal(number)

    def wait(self, within: float) -> int:
        """Return the status with which the node ends; AssertionError if it does not in time."""
        try:
            return self.process.wait(within * time_factor())
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the node did not end within {within} s:\n{self.log()}") from None

    def connect(self) -> WireClient:
        """Return a connection to whichever worker the kernel chooses."""
        client = connect(self.port)
        self.clients.append(client)
        return client

    def connect_to(self, slot: int) -> WireClient:
        """Return a connection to the worker in `slot`, which serves."""
        return connection_to(slot, self.connect)


def events_of(log: str, name: str) -> list[dict[str, str]]:
    """Return the fields of the events of this name in a log, oldest first."""
    lines = (dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line)) for line in log.splitlines())
    return [fields for fields in lines if fields.get("event") == name]


def connection_to(slot: int, connect: Callable[[], WireClient]) -> WireClient:
    """Return a connection to the worker in `slot`, which serves."""

    def connection() -> WireClient | None:
        client = connect()
        if client.worker() == slot:
            return client
        client.close()
        return None

    found = eventually(connection, within=20.0)
    assert found is not None
    return found


@contextlib.contextmanager
def node(
    *,
    workers: int = 2,
    drain_timeout_s: float = 10.0,
    command: Sequence[str] = (sys.executable, "-m", "workers"),
    settings: Sequence[str] = (),
    serves: bool = True,
) -> Iterator[Node]:
    """Run a node on a free port; `serves=False` does not wait for it to do so."""
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as log:
        with theirs:
            arguments = ["--port=0", f"--workers={workers}", f"--drain-timeout={drain_timeout_s}s", *settings]
            process = subprocess.Popen(
                [*command, *arguments, f"--parent-fd={theirs.fileno()}"],
                pass_fds=[theirs.fileno()], stderr=log, start_new_session=True,
            )  # fmt: skip
        found = Node(process, ours, log)
        try:
            if serves:
                found.wait_until_it_serves()
            yield found
        except AssertionError as error:
            error.add_note(f"the log of {shlex.join(command)}:\n{found.log()}")
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for client in found.clients:
                client.close()


def connect(port: int) -> WireClient:
    """Connect to a node of this machine, and say :hello."""
    return WireClient.open(("127.0.0.1", port)).say_hello()


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, even if nobody has asked for its status yet."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def open_files(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))
