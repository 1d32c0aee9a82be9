"""A node as its operator sees it, a process with children, and a client that says exactly what it is told to.

Everything that starts here ends with its `with` block, whatever became of it: the node has its own process group,
and a socket that ends it if this program dies.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgpack

from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from tests.helpers import eventually, time_factor, written_to
from tests.simulation.stage import socket_for

FAULTY = (sys.executable, str(Path(__file__).with_name("faulty_node.py")))
"""The command of a node whose workers can be told to fail; see there, and the fixture `fault`."""

TIMED_OUT = msgpack.ExtType(wire.TIMEOUT_TYPE, b"\0")


class Node:
    """A running node: its processes, its port and what it logged."""

    def __init__(self, process: subprocess.Popen[bytes], parent: socket.socket, log: IO[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.parent = parent
        self._log = log
        self.port = 0
        self.first_workers: list[int] = []
        self.clients: list[Client] = []  # closed at the end at the latest

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

    def connect(self) -> Client:
        """Return a connection to whichever worker the kernel chooses."""
        client = Client(self.port)
        self.clients.append(client)
        return client

    def connect_to(self, slot: int) -> Client:
        """Return a connection to the worker in `slot`, which serves."""
        return connection_to(slot, self.connect)


def events_of(log: str, name: str) -> list[dict[str, str]]:
    """Return the fields of the events of this name in a log, oldest first."""
    lines = (dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', line)) for line in log.splitlines())
    return [fields for fields in lines if fields.get("event") == name]


def connection_to(slot: int, connect: Callable[[], Client]) -> Client:
    """Return a connection to the worker in `slot`, which serves."""

    def connection() -> Client | None:
        client = connect()
        if client.worker == slot:
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


_topics = itertools.count()


class Client:
    """One connection. Calls are Python values; replies are awaited by the id of their call."""

    def __init__(self, port: int, timeout_s: float = 10.0, host: str = "127.0.0.1") -> None:
        self.socket = socket_for((host, port))
        self.socket.settimeout(timeout_s * time_factor())
        try:
            self.socket.connect((host, port))
        except BaseException:
            self.socket.close()
            raise
        self._buffer = b""
        self._kept: bytes | None = None
        self._replies: dict[int, Any] = {}
        self._ids = 0
        self._greeting: dict[str, Any] | None = None
        self._hello = self.begin(":hello", {})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close in the orderly way."""
        self.socket.close()

    def vanish(self) -> None:
        """Close with a reset, and whatever is unread or unwritten is gone."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    @property
    def greeting(self) -> dict[str, Any]:
        """What the worker says of itself and of its node."""
        if self._greeting is None:
            self._greeting = self.result(self._hello)
        return self._greeting

    @property
    def worker(self) -> int:
        """The slot of the worker that has this connection."""
        return int(self.greeting["worker"])

    def topic_owned_by(self, slot: int) -> str:
        """Return a topic, new at every call of the test run, that the worker in `slot` owns."""
        ring = Ring(self.greeting["tokens"])
        return next(
            topic
            for topic in (f"topic-{next(_topics)}-{number}" for number in range(100_000))
            if ring.owner(token_of(values.pack(topic))) == slot
        )

    def begin(self, method: str, *arguments: object) -> int:
        """Make a call and return its id."""
        self._ids += 1
        self._write([method, self._ids, *arguments])
        return self._ids

    def acknowledge(self, call: int) -> None:
        """Say that the value of a call has come; nothing is answered."""
        self._write([":ack", call])

    @contextlib.contextmanager
    def in_one_write(self) -> Iterator[None]:
        """Keep what is said in the block, and write it together."""
        self._kept = b""
        yield
        data, self._kept = self._kept, None
        self.socket.sendall(data)

    def _write(self, frame: list[object]) -> None:
        body = msgpack.packb(frame)
        data = len(body).to_bytes(2, "big") + body
        if self._kept is None:
            self.socket.sendall(data)
        else:
            self._kept += data

    def result(self, call: int) -> Any:
        """Wait for the result of a call. Raises Refused for an error, ConnectionError if there will be none."""
        while call not in self._replies:
            self._read()
        result = self._replies.pop(call)
        if isinstance(result, msgpack.ExtType) and result.code == wire.ERROR_TYPE:
            raise Refused(*msgpack.unpackb(result.data)[:2])
        return result

    def call(self, method: str, *arguments: object) -> Any:
        """Make a call and return its result."""
        return self.result(self.begin(method, *arguments))

    def wait_until(self, topic: str, **counts: object) -> None:
        """Wait until so many wait on a topic: `receivers`, `senders`, or `takers` by group."""

        def counted() -> bool:
            census = self.call(":topic", topic)
            return all(census[key] == count for key, count in counts.items())

        eventually(counted)

    def _read(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionResetError("the server closed the connection")
        self._buffer += data
        while len(self._buffer) >= 2 and len(self._buffer) >= (end := 2 + int.from_bytes(self._buffer[:2], "big")):
            _, id, result = msgpack.unpackb(self._buffer[2:end], strict_map_key=False)
            assert id not in self._replies, f"call {id} was answered twice"
            self._replies[id] = result
            self._buffer = self._buffer[end:]


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


def code_of(call: Callable[..., object], *arguments: object) -> str:
    """Return the code of the error that `call(*arguments)` is refused with; AssertionError if it is not."""
    try:
        result = call(*arguments)
    except Refused as refused:
        return refused.code
    raise AssertionError(f"not refused, but answered {result!r}")


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
