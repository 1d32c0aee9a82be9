"""A generator's end of a connection whose other end speaks TLS."""

from __future__ import annotations

import functools
import socket
from typing import Final

from bench.errors import Unreachable
from skywalker.tls.contexts import client_context
from skywalker.tls.records import Records
from workers.engine.secure_socket import SecureSocket

context_of: Final = functools.cache(client_context)
"""The same for every connection: to read the files of authorities each time would be most of the work."""


class Secure(SecureSocket):
    """One, with what a generator does to a socket besides. Made by connected()."""

    __slots__ = ()

    @classmethod
    def connected(cls, sock: socket.socket, ca: str, host: str) -> Secure:
        """Shake hands with a host whose certificate the authorities in file `ca` have signed. Raises Unreachable."""
        secure = cls(sock, Records(context_of(ca), server_hostname=host))
        try:
            secure.hello()
            while not secure.shake_hands():
                pass
        except OSError as error:
            raise Unreachable(f"{host} does not speak TLS as it should: {error}") from error
        return secure

    def setblocking(self, waits: bool) -> None:
        """Have it wait or not, as the method of a socket does."""
        self._socket.setblocking(waits)

    def sendall(self, data: bytes) -> None:
        """Write it all, on a socket that waits. Raises OSError."""
        while data:
            data = data[self.send(data) :]


Link = socket.socket | Secure
"""What a generator reads from and writes to."""
