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
from typing import TYPE_CHECKING, Final

from skywalker.clients.blocking.connection import LineConnection, line_connection
from skywalker.clients.blocking.dialer import Opening
from skywalker.clients.core import Dial
from skywalker.clients.machine import MACHINE
from skywalker.clients.sockets import ATTEMPT_S, direct_socket, numeric
from skywalker.clients.stream import Stream
from skywalker.dialling import begin

if TYPE_CHECKING:
    import ssl

_GONE: Final = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR


@dataclass(eq=False, slots=True)
class Attempt:
    """A connection that is being made."""

    wanted: Dial
    opening: Opening
    give_up_at: float

    @property
    def socket(self) -> socket.socket:
        return self.opening.socket


@dataclass(slots=True)
class Turn:
    """What has happened in one wait."""

    read: list[tuple[LineConnection, bytes]] = field(default_factory=list)
    lost: list[tuple[LineConnection, OSError]] = field(default_factory=list)
    writable: bool = False  # a connection with something unsent has room
    opened: list[Attempt] = field(default_factory=list)  # connections that are there, to be adopted
    failed: list[Dial] = field(default_factory=list)  # those that cannot be made

    def is_all_reading(self) -> bool:
        """Whether nothing has happened but what `read` tells."""
        return not (self.lost or self.writable or self.opened or self.failed)


class Directs:
    """Only whoever leads waits, dials and forgets; watch() is for anyone."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._poller: select.epoll | None = None
        self._connections: dict[int, LineConnection] = {}  # by descriptor; the main one too
        self._attempts: dict[int, Attempt] = {}  # by descriptor

    def __bool__(self) -> bool:
        return self._poller is not None

    def dial(self, main: LineConnection, host: str, wanted: Dial) -> None:
        """Begin to make a connection; `host` is that of the main one. Raises OSError if that cannot even be begun."""
        if self._poller is None:
            self._poller = select.epoll()
            self.watch(main)
        try:
            peer = (main.socket.family, main.socket.getpeername())
            family, form = peer if wanted.address is None else numeric(wanted.address)
            sock = direct_socket(family, wanted, MACHINE)
            opening = Opening(sock, host if wanted.address is None else wanted.address.host, self._tls)
            attempt = self._attempts[sock.fileno()] = Attempt(wanted, opening, time.monotonic() + ATTEMPT_S)
            try:
                self._poller.register(sock, select.EPOLLOUT)
                begin(sock, form)
            except OSError:
                self._drop(attempt)
                raise
        except OSError:
            self.rest(main)
            raise

    def adopt(self, attempt: Attempt, line: Stream) -> None:
        """Let a connection that was opened be that of a line."""
        assert self._poller is not None
        attempt.socket.setblocking(True)
        connection = line_connection(attempt.opening, line)
        del self._attempts[connection.fd]
        self._connections[connection.fd] = connection
        self._poller.modify(connection.fd, select.EPOLLIN)

    def watch(self, connection: LineConnection) -> None:
        """Wait for what comes over a connection too, and while something is unsent, for room."""
        if self._poller is None:
            return
        events = select.EPOLLIN | (select.EPOLLOUT if connection.unsent else 0)
        if connection.fd in self._connections:
            self._poller.modify(connection.fd, events)
        else:
            self._connections[connection.fd] = connection
            self._poller.register(connection.fd, events)

    def close_one(self, connection: LineConnection, main: LineConnection | None) -> None:
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
        if self._attempts:
            soonest = min(attempt.give_up_at for attempt in self._attempts.values())
            seconds = min(seconds, max(0.0, soonest - time.monotonic()))
        for fd, events in self._poller.poll(seconds):
            connection = self._connections.get(fd)
            if connection is None:
                if (attempt := self._attempts.get(fd)) is not None:
                    self._settle(attempt, turn)
                else:
                    self._poller.unregister(fd)  # an exception came just when it was to be adopted
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
        if self._attempts:
            now = time.monotonic()
            for attempt in [each for each in self._attempts.values() if each.give_up_at <= now]:
                if attempt not in turn.opened:
                    self._drop(attempt)
                    turn.failed.append(attempt.wanted)
        return turn

    def _settle(self, attempt: Attempt, turn: Turn) -> None:
        """Go on with an attempt, and take in how it has ended if it has."""
        assert self._poller is not None
        try:
            if attempt.opening.advance():
                turn.opened.append(attempt)
            else:
                self._poller.modify(attempt.socket, attempt.opening.events)
        except OSError:
            self._drop(attempt)
            turn.failed.append(attempt.wanted)

    def _drop(self, attempt: Attempt) -> None:
        if self._poller is not None:
            with contextlib.suppress(FileNotFoundError):  # an exception may have come before it was registered
                self._poller.unregister(attempt.socket)
        del self._attempts[attempt.socket.fileno()]
        attempt.socket.close()

    def rest(self, main: LineConnection | None) -> None:
        """Stop if there is nothing here to wait for besides the main connection."""
        if not self._attempts and not self._connections.keys() - {main.fd if main else -1}:
            self._stop()

    def shut_all(self) -> None:
        """End the streams of all."""
        for connection in [*self._connections.values()]:
            connection.shut()

    def close(self) -> None:
        """Close all; in the child of a fork that closes copies only, and the parent's registrations stay."""
        for attempt in self._attempts.values():
            attempt.socket.close()
        self._attempts.clear()
        for connection in self._connections.values():
            connection.close()
        self._stop()

    def _stop(self) -> None:
        self._connections.clear()
        if self._poller is not None:
            self._poller.close()
            self._poller = None
