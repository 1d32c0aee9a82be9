"""A listening socket: accepts connections and gives each to a dialect."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Final

from skywalker.errors import Busy
from workers.alarm import Alarm
from workers.closes import Close
from workers.connection import Connection
from workers.router import Router

ACCEPTS_PER_TURN: Final = 64
"""Connections accepted in a turn, so that a flood of them does not hold up those that are there."""

PAUSE_S: Final = 0.2
"""Seconds without accepting when this process has no descriptors left."""

_NO_RESOURCES: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))


class Door:
    """Accepts on one listener, for one dialect."""

    def __init__(
        self, listener: socket.socket, dialect: Callable[[socket.socket, str, Router], Connection], router: Router
    ) -> None:
        self._listener = listener
        self._dialect = dialect
        self._router = router
        self._opened = False
        self._reopen = Alarm(self.open)

    def open(self) -> None:
        """Accept from now on."""
        self._opened = True
        self._router.loop.add(self._listener.fileno(), self)

    def close(self) -> None:
        """Take in who has connected already, since closing the listener would reset them; then close it."""
        while self._accept():
            pass
        self.leave()

    def leave(self) -> None:
        """Accept nobody any more: others have this listener, too."""
        self._pause()
        self._reopen.off(self._router.turn)
        self._listener.close()

    def ready(self, events: int) -> None:
        """Accept those who wait."""
        for _ in range(ACCEPTS_PER_TURN):
            if not self._accept():
                return

    def _accept(self) -> bool:
        """Accept one connection; return False if none waits or none can be had."""
        router = self._router
        try:
            sock, address = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False
        except OSError as error:
            if error.errno not in _NO_RESOURCES:
                raise
            router.log.error("cannot-accept", reason=error.strerror, retry_s=PAUSE_S)
            self._pause()
            self._reopen.set(router.turn, router.turn.now + PAUSE_S)
            return False
        sock.setblocking(False)
        connection = self._dialect(sock, f"{address[0]}:{address[1]}", router)
        router.opened(connection)
        limit = router.limits.max_connections
        if len(router.connections) + len(router.peers.guests) > limit:
            busy = Busy(f"this worker has {limit} connections", {"limit": "max_connections", "value": limit})
            connection.turn_away(busy, Close.REFUSED, "too many connections")
        return True

    def _pause(self) -> None:
        if self._opened:
            self._opened = False
            self._router.loop.remove(self._listener.fileno())
