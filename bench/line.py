"""A connection of a generator that an epoll watches: written to and read from without ever waiting."""

from __future__ import annotations

import select

from bench.errors import Unreachable
from bench.secure import Link


class Line:
    """An open socket, to be read whenever the epoll says so. What has no room in it now is written then."""

    __slots__ = ("_epoll", "_socket", "_unsent")

    def __init__(self, sock: Link, epoll: select.epoll) -> None:
        self._unsent = b""
        self._socket = sock
        self._epoll = epoll
        sock.setblocking(False)
        epoll.register(sock, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._socket.fileno()

    def write(self, data: bytes) -> None:
        """Write, now or as soon as there is room. Raises Unreachable."""
        had_unsent = bool(self._unsent)
        data = self._unsent + data
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if sent < len(data) or had_unsent:
            self._unsent = data[sent:]
            self._epoll.modify(self._socket, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def read(self, most: int) -> bytes | None:
        """Return what has come, None if nothing has. Raises Unreachable, at the end too."""
        if self._unsent:
            self.write(b"")
        try:
            data = self._socket.recv(most)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if not data:
            raise Unreachable("the server closed a connection")
        return data
