"""One connection of a channel: bytes to and from a worker, and the lanes whose calls are in flight there."""

from __future__ import annotations

import select
import socket

from bench.replies import READ_BYTES


class Connection:
    """An open socket, read when an epoll says so."""

    def __init__(self, sock: socket.socket, epoll: select.epoll, owned: bytes | None) -> None:
        """`owned` are the lanes whose topics the worker owns, None where that is not known."""
        self.owned = owned
        self.lanes: set[int] = set()  # in flight
        self.tail = b""  # the beginning of a reply
        self.closed = False
        self._unsent = b""
        self._socket = sock
        self._epoll = epoll
        epoll.register(sock, select.EPOLLIN)

    def read(self) -> bytes | None:
        """Write what could not be written before, and return what has come: None if nothing, no bytes at the end."""
        if self._unsent and not self.write(b""):
            return b""
        try:
            return self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def write(self, data: bytes) -> bool:
        """Write, now or as soon as there is room; return whether the connection still is one."""
        had_unsent = bool(self._unsent)
        data = self._unsent + data
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return False
        if sent < len(data) or had_unsent:
            self._unsent = data[sent:]
            self._epoll.modify(self._socket, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))
        return True

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._socket.close()
