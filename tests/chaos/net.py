"""Real connections to real nodes, with the face of the simulated ones, so that the same clients make them."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable, Mapping

from tests.chaos.clock import Clock, Poller, Task
from tests.simulation.kernel import NEVER, Process

Door = Callable[[], socket.socket]
"""Connects to a door of a node, or begins to. Raises OSError."""


class Net:
    """Where clients find doors: each is some node's."""

    def __init__(self, kernel: Clock, doors: Mapping[Door, str]) -> None:
        self.kernel = kernel
        self.doors = doors

    def task(self, name: str, host: str, process: Process) -> Task:
        """Return what has a client run."""
        return Task(self.kernel, name, host, process)

    def machine(self, task: Task) -> Machine:
        """Return what a client asks for connections."""
        return Machine(task)

    def node_at(self, door: Door) -> str:
        """Return whose door it is."""
        return self.doors[door]


class Machine:
    """What a client asks for connections."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def poller(self) -> Poller:
        """Return what tells of its connections when they are ready."""
        return self._task.poller

    def tcp(self) -> Socket:
        """Return a connection that is still to be made."""
        return Socket(self._task)


class End:
    """What a connection has brought its client. Nobody can tell when the other side ended it, nor which that is."""

    peer = "a node"
    worker = None
    ended_at = reset_at = mute_at = NEVER

    def __init__(self) -> None:
        self.taken: list[tuple[float, bytes]] = []
        self.room = 0


class Socket:
    """A connection."""

    def __init__(self, task: Task) -> None:
        self.end = End()
        self._task = task
        self._error = 0
        self._socket: socket.socket

    def connect_ex(self, door: Door) -> int:
        """Go in by a door. If nobody lets it in, getsockopt() tells."""
        try:
            self._socket = door()
        except OSError as error:
            self._error = error.errno or errno.ECONNREFUSED
            self._socket, other = socket.socketpair()  # which has ended, so that it is ready
            other.close()
        self._socket.setblocking(False)
        return errno.EINPROGRESS

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._socket.fileno()

    def getsockopt(self) -> int:
        """Return why it could not be made; 0 if it is."""
        return self._error or self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def recv(self, size: int) -> bytes:
        """Return what has come. Raises BlockingIOError for nothing, OSError if it is broken."""
        try:
            data = self._socket.recv(size)
        except ssl.SSLWantReadError as error:
            raise BlockingIOError from error
        self.end.taken.append((self._task.clock(), data))
        return data

    def send(self, data: bytes) -> int:
        """Write what there is room for; return how much. Raises BlockingIOError, or OSError if it is broken."""
        try:
            return self._socket.send(data)
        except ssl.SSLWantWriteError as error:
            raise BlockingIOError from error

    def close(self) -> None:
        """End it."""
        self._socket.close()
