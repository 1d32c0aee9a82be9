"""A listening socket: accepts connections and gives each to a dialect."""

from __future__ import annotations

import errno
import functools
import socket
from typing import Final

from workers.access.admission import Stranger, user_of
from workers.doors.client import Client
from workers.doors.clients import Clients
from workers.doors.handshake import Handshake
from workers.engine.loop import READ, Alarm
from workers.engine.transport import Transport

ACCEPTS_PER_TURN: Final = 64
"""Connections accepted in a turn, so that a flood of them does not hold up those that are there."""

PAUSE_S: Final = 0.2
"""Seconds without accepting when this process has no descriptors left."""

MAX_REFUSED: Final = 64
"""Connections beyond max_connections that are told so: each of these takes a descriptor until it has read that."""

_NO_RESOURCES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Door:
    """Accepts on one listener, where `backlog` connections may wait, for one dialect."""

    def __init__(self, listener: socket.socket, backlog: int, dialect: type[Client], clients: Clients) -> None:
        self._listener = listener
        self._backlog = backlog
        self._dialect = dialect
        self._clients = clients
        self._commons = commons = clients.commons
        self._is_secure = commons.credentials is not None and listener.family != socket.AF_UNIX
        self._opened = False
        self._reopen = Alarm()

    def open(self) -> None:
        """Accept from now on."""
        if not self._opened:
            self._opened = True
            self._commons.loop.add(self._listener.fileno(), self)

    def close(self) -> None:
        """Take in who has connected already, since closing the listener would reset them; then close it."""
        for _ in range(self._backlog + 1):
            if not self._accept():
                break  # else they come as fast as they are accepted
        self.leave()

    def leave(self) -> None:
        """Accept nobody any more: others have this listener, too."""
        self._shut()
        self._reopen.off(self._commons.turn)
        self._listener.close()

    def ready(self, events: int) -> None:
        """Accept those who wait. Where they are to speak TLS that is done one by one, as a part of their handshakes."""
        if self._is_secure:
            self._commons.admission.handshakes.come(self)
            return
        for _ in range(ACCEPTS_PER_TURN):
            if not self._accept():
                return

    def pause(self) -> None:
        """Look no more for who comes, until there is time for a handshake again."""
        self._commons.loop.change(self._listener.fileno(), 0)

    def resume(self) -> None:
        """Look for them again."""
        self._commons.loop.change(self._listener.fileno(), READ)

    def go_on(self) -> None:
        """Accept one of those who wait."""
        self._accept()

    def _accept(self) -> bool:
        """Accept one connection; return False if none waits or none can be had."""
        commons = self._commons
        try:
            sock, address = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False
        except OSError as error:
            if error.errno not in _NO_RESOURCES:
                raise
            commons.log.error("cannot-accept", reason=error.strerror, retry_s=PAUSE_S)
            self._shut()
            self._reopen.set(commons.turn, commons.turn.now + PAUSE_S, self.open)
            return False
        if self._clients.excess() >= MAX_REFUSED:
            sock.close()
            commons.turn.counters.limited("max_connections")
            return True
        sock.setblocking(False)
        if sock.family == socket.AF_UNIX:
            pid, uid = user_of(sock)
            self._clients.let_in(self._dialect, sock.detach(), f"uid={uid},pid={pid}", uid=uid)
        else:
            host = str(address[0])
            peer = f"{host}:{address[1]}"
            if commons.credentials is None:
                self._clients.let_in(self._dialect, sock.detach(), peer, host)
            else:
                secured = functools.partial(self._secured, peer, host)
                Handshake(sock, peer, commons.credentials.server(), commons, self._dialect.tls_wanted, secured)
        return True

    def _secured(self, peer: str, host: str, transport: Transport, stranger: Stranger) -> None:
        fd = transport.fileno()
        client = self._clients.let_in(self._dialect, fd, peer, host, transport=transport, stranger=stranger)
        if not client.is_gone:
            self._commons.core.read(client.handle)  # it may have spoken with its last word of the handshake

    def _shut(self) -> None:
        if self._opened:
            self._opened = False
            self._commons.admission.handshakes.go(self)
            self._commons.loop.remove(self._listener.fileno())
