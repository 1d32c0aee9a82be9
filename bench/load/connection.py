"""One connection of a channel: bytes to and from a worker, and the lanes whose calls are in flight there."""

from __future__ import annotations

import select
import socket

from bench.line import Line


class Connection(Line):
    """An open one."""

    def __init__(self, sock: socket.socket, epoll: select.epoll, owned: bytes | None) -> None:
        """`owned` are the lanes whose topics the worker owns, None where that is not known."""
        super().__init__(sock, epoll)
        self.owned = owned
        self.lanes: set[int] = set()  # in flight
        self.tail = b""  # the beginning of a reply
        self.closed = False

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._socket.close()
