"""A connection of a generator that an epoll watches: written to and read from without ever waiting."""

from __future__ import annotations

import select
from typing import Final

from bench.errors import Unreachable
from workers.engine.transport import Transport

READ_BYTES: Final = 256 * 1024
"""The most that is read at a time."""


class Line:
    """An open connection, to be read whenever the epoll says so. What has no room in it now is written then."""

    __slots__ = ("_epoll", "_link", "_unsent", "closed")

    def __init__(self, link: Transport, epoll: select.epoll) -> None:
        self.closed = False
        self._unsent = b""
        self._link = link
        self._epoll = epoll
        epoll.register(link, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._link.fileno()

    def write(self, data: bytes) -> None:
        """Write, now or as soon as there is room. Raises Unreachable."""
        had_unsent = bool(self._unsent)
        data = self._unsent + data
        try:
            sent = self._link.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if sent < len(data) or had_unsent:
            self._unsent = data[sent:]
            self._epoll.modify(self._link, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def read(self, most: int = READ_BYTES) -> bytes | None:
        """Return what has come, None if nothing has. Raises Unreachable, at the end too."""
        if self._unsent:
            self.write(b"")
        try:
            data = self._link.recv(most)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if not data:
            raise Unreachable("the server closed a connection")
        return data

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._link.close()
