"""The direct connections of a blocking client, and the main one beside them: waits for all at once.

There is something here only while there are direct connections, or one is being made; a client
with its main connection alone needs one system call for a receive, and not two.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from dataclasses import dataclass, field
from typing import Final

from skywalker.clients.connection import Connection
from skywalker.clients.dialer import ATTEMPT_S, direct_socket
from skywalker.clients.line import Line
from skywalker.clients.routes import Dial

_GONE: Final = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR


@dataclass(slots=True)
class Turn:
    """What has happened in one wait."""

    read: list[tuple[Connection, bytes]] = field(default_factory=list)
    lost: list[tuple[Connection, OSError]] = field(default_factory=list)
    writable: bool = False  # a connection with something unsent has room
    opened: bool = False  # the connection that was being made is there, to be adopted
    failed: bool = False  # or it cannot be made

    def is_all_reading(self) -> bool:
        """Whether nothing has happened but what `read` tells."""
        return not (self.lost or self.writable or self.opened or self.failed)


class Directs:
    """Only whoever leads waits, dials and forgets; watch() is for anyone."""

    def __init__(self) -> None:
        self._poller: select.epoll | None = None
        self._connections: dict[int, Connection] = {}  # by descriptor; the main one too
        self._attempt: socket.socket | None = None
        self._give_up_at = 0.0

    def __bool__(self) -> bool:
        return self._poller is not None

    def dial(self, main: Connection, wanted: Dial) -> None:
        """Begin to make a connection. Raises OSError if that cannot even be begun."""
        if self._poller is None:
            self._poller = select.epoll()
            self.watch(main)
        self._give_up_at = time.monotonic() + ATTEMPT_S
        try:
            self._attempt = direct_socket(main.socket.family, wanted)
            self._poller.register(self._attempt, select.EPOLLOUT)
            self._attempt.connect_ex(main.socket.getpeername())
        except OSError:
            self._drop_attempt()
            self.rest(main)
            raise

    def adopt(self, line: Line) -> None:
        """Let the connection that was opened be that of a line."""
        assert self._attempt is not None
        assert self._poller is not None
        self._attempt.setblocking(True)
        connection = Connection(self._attempt, line)
        self._connections[connection.fd] = connection
        self._attempt = None
        self._poller.modify(connection.fd, select.EPOLLIN)

    def watch(self, connection: Connection) -> None:
        """Wait for what comes over a connection too, and while something is unsent, for room."""
        if self._poller is None:
            return
        events = select.EPOLLIN | (select.EPOLLOUT if connection.unsent else 0)
        if connection.fd in self._connections:
            self._poller.modify(connection.fd, events)
        else:
            self._connections[connection.fd] = connection
            self._poller.register(connection.fd, events)

    def close_one(self, connection: Connection, main: Connection | None) -> None:
        """Close a connection; do not wait here for anything any more if only `main` is left."""
        if self._poller is not None and self._connections.get(connection.fd) is connection:
            # A copy of the descriptor in a child would keep it registered.
            self._poller.unregister(connection.fd)
            del self._connections[connection.fd]
            self.rest(main)
        connection.close()

    def wait(self, seconds: float) -> Turn:
        """Return what happens within so many seconds."""
        assert self._poller is not None
        turn = Turn()
        if self._attempt is not None:
            seconds = min(seconds, max(0.0, self._give_up_at - time.monotonic()))
        for fd, events in self._poller.poll(seconds):
            connection = self._connections.get(fd)
            if connection is None:
                assert self._attempt is not None
                turn.failed = self._attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
                turn.opened = not turn.failed
                continue
            if events & select.EPOLLOUT:
                turn.writable = True
            if events & _GONE:
                try:
                    data = connection.read(0.0)
                except OSError as error:
                    turn.lost.append((connection, error))
                else:
                    if data is not None:
                        turn.read.append((connection, data))
        if self._attempt is not None and not turn.opened and time.monotonic() >= self._give_up_at:
            turn.failed = True
        if turn.failed:
            self._drop_attempt()
        return turn

    def _drop_attempt(self) -> None:
        if self._attempt is not None:
            if self._poller is not None:
                with contextlib.suppress(FileNotFoundError):  # an exception may have come before it was registered
                    self._poller.unregister(self._attempt)
            self._attempt.close()
            self._attempt = None

    def rest(self, main: Connection | None) -> None:
        """Stop if there is nothing here to wait for besides the main connection."""
        if self._attempt is None and not self._connections.keys() - {main.fd if main else -1}:
            self._stop()

    def shut_all(self) -> None:
        """End the streams of all."""
        for connection in [*self._connections.values()]:
            connection.shut()

    def close(self) -> None:
        """Close all; in the child of a fork that closes copies only, and the parent's registrations stay."""
        if self._attempt is not None:
            self._attempt.close()
            self._attempt = None
        for connection in self._connections.values():
            connection.close()
        self._stop()

    def _stop(self) -> None:
        self._connections.clear()
        if self._poller is not None:
            self._poller.close()
            self._poller = None
