"""What a connection reads from and writes to, whether in TLS or not; and the one that speaks none.

That which does is secure_socket.py. Whoever has a transport need not know which it is.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Protocol

Name = tuple[str, int] | tuple[str, int, int, int] | str
"""Where one end of a connection is; a text by a Unix socket."""


class Transport(Protocol):
    """One connection, which never waits."""

    @property
    def begun(self) -> int:
        """Bytes of what is to be written next that are on their way: the next send() has to begin with them."""

    @property
    def ended(self) -> bool:
        """Whether the other end has said its last, though the kernel may have nothing more to tell of it."""

    def names(self) -> tuple[str, ...]:
        """Return the names in the certificate of the other end."""

    def recv(self, size: int, /) -> bytes:
        """Return what has come, empty at the end; it may be more than `size`.

        Raises BlockingIOError if there is nothing, OSError if the connection is broken.
        """

    def send(self, data: bytes, /) -> int:
        """Write what the kernel takes; return how much of `data` that is.

        Raises BlockingIOError if it takes nothing, OSError if the connection is broken.
        """

    def shutdown(self, how: int, /) -> None:
        """Say that nothing more comes from here. One that is broken says so when it is read."""

    def close(self) -> None:
        """Close it."""

    def fileno(self) -> int:
        """Return its descriptor."""

    def detach(self) -> int | None:
        """Give its descriptor away, to be read and written as it is; None of one that only this can read."""

    def getsockname(self) -> Name:
        """Return where our end is."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None:
        """Set an option of its socket."""


def transmit(transport: Transport, data: bytes) -> tuple[int, int]:
    """Write what the kernel takes, be it nothing; return how much that is, and how much of the rest is on its way.

    Raises OSError if the connection is broken.
    """
    sent = 0
    with contextlib.suppress(BlockingIOError):
        sent = transport.send(data)
    return sent, transport.begun


class PlainSocket:
    """A connection without TLS: `recv` and `send` are the methods of its socket, and nothing stands between."""

    __slots__ = ("_socket", "recv", "send")

    begun = 0
    ended = False

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.recv = sock.recv
        self.send = sock.send

    def names(self) -> tuple[str, ...]:
        return ()

    def shutdown(self, how: int) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def detach(self) -> int | None:
        return self._socket.detach()

    def getsockname(self) -> Name:
        return self._socket.getsockname()  # type: ignore[no-any-return]  # of a TCP or a Unix socket

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._socket.setsockopt(level, option, value)
