"""Connections of a blocking client by TLS: as those without, with what is read and written made of records."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from skywalker.clients.blocking.connection import Connection, LineConnection
from skywalker.clients.stream import Stream

if TYPE_CHECKING:
    from skywalker.clients.blocking.opening import Opening
    from skywalker.tls.records import Records


class _Enciphered(Connection):
    """What both kinds have in common; the slots are theirs, since only one of two bases may have some.

    What is unsent are records. Reading makes some too, which leave with what is written next if
    the kernel has no room for them.
    """

    __slots__ = ()

    _lock: threading.Lock  # of the records: never held while waiting, nor while another is asked for
    _records: Records

    def write(self, data: bytes) -> None:
        with self._lock:
            try:
                self._records.write(data)
            except OSError:
                self.shut()  # whoever leads finds the end of the stream
                return
            super().write(self._records.output())

    def read(self, wait: float, slack: float = 0.0) -> bytes | None:
        data = super().read(wait, slack)
        if data is None:
            return None
        with self._lock:
            self._records.feed(data)
            try:
                plaintext = self._records.read()
            finally:
                if output := self._records.output():
                    super().write(output)
        if self._records.ended:
            self.shut()  # so that it has ended for whoever polls the socket, too
        return plaintext or None


class TlsConnection(_Enciphered):
    """A connection by TLS, with hands shaken."""

    __slots__ = ("_lock", "_records")

    def __init__(self, sock: socket.socket, records: Records) -> None:
        super().__init__(sock)
        self._lock = threading.Lock()
        self._records = records


class TlsLineConnection(_Enciphered, LineConnection):
    """The connection of a line by TLS, with hands shaken."""

    __slots__ = ("_lock", "_records")

    def __init__(self, sock: socket.socket, records: Records, line: Stream) -> None:
        LineConnection.__init__(self, sock, line)
        self._lock = threading.Lock()
        self._records = records


def connection(opening: Opening) -> Connection:
    """Return the connection that was opened: by TLS if hands were shaken."""
    sock, records = opening.socket, opening.records
    return Connection(sock) if records is None else TlsConnection(sock, records)


def line_connection(opening: Opening, line: Stream) -> LineConnection:
    """Return the connection of a line, likewise."""
    sock, records = opening.socket, opening.records
    return LineConnection(sock, line) if records is None else TlsLineConnection(sock, records, line)
