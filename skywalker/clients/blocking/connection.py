"""One connection of a blocking client: its socket, and what the kernel had no room for; by TLS made of records."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from typing import TYPE_CHECKING, Final

from skywalker.clients.stream import Stream
from skywalker.limits import KIB

if TYPE_CHECKING:
    from skywalker.clients.blocking.dialer import Opening
    from skywalker.tls.records import Records


READ_BYTES: Final = 64 * KIB


class Connection:
    """A socket. Any thread may write, one at a time; one at a time, the leader, reads and closes."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.fd = sock.fileno()
        self.unsent = bytearray()
        self._refused = 0  # bytes that the kernel did not take at the end
        self._receive_timeout = 0.0  # seconds, as the socket has it

    def write(self, data: bytes) -> None:
        """Write what is unsent and then `data`, as much as the kernel takes at once, and keep the rest."""
        whole: bytes | bytearray = data
        if self.unsent:
            # Who is interrupted just here must not take for unsent what may have left.
            whole, self.unsent = self.unsent, bytearray()
            whole += data
        try:
            sent = self.socket.send(whole, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError:
            # Whoever leads finds the end of the stream, and after it the calls are issued again.
            self.shut()
            sent = len(whole)
            self._refused += sent
        if sent < len(whole):
            # What has waited long is not copied for each byte that comes to it.
            rest = whole if isinstance(whole, bytearray) else bytearray(whole)
            del rest[:sent]
            self.unsent = rest

    def read(self, wait: float, slack: float = 0.0) -> bytes | None:
        """Return what comes within `wait` seconds and perhaps `slack`, None if nothing does.

        Raises OSError at the end of the stream.
        """
        flags = 0
        if wait <= 0:
            flags = socket.MSG_DONTWAIT
        elif not wait / 2 < self._receive_timeout <= wait + slack:
            # The kernel keeps the time, so that a receive is one system call; it is told only what is new to it.
            self._receive_timeout = max(wait, 0.001)  # 0 would mean for ever
            seconds, fraction = divmod(self._receive_timeout, 1)
            timeval = struct.pack("@ll", int(seconds), int(fraction * 1e6))
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)
        try:
            data = self.socket.recv(READ_BYTES, flags)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionResetError("the node closed the connection")
        return data

    @property
    def unwritten(self) -> int:
        """How many bytes of what was written surely never left, of a connection that is lost."""
        return self._refused + len(self.unsent)

    def shut(self) -> None:
        """End the stream both ways: whoever reads finds its end."""
        with contextlib.suppress(OSError):  # the other side may have been quicker
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket. The leader does, or whoever finds that there is none."""
        self.socket.close()


class LineConnection(Connection):
    """The socket of a line."""

    def __init__(self, sock: socket.socket, line: Stream) -> None:
        super().__init__(sock)
        self.line = line
        line.shell = self

    def close(self) -> None:
        self.line.shell = None
        super().close()


def wait_for(fd: int, events: int, wait: float) -> bool:
    """Return whether one of the poll events happens within `wait` seconds."""
    poller = select.poll()
    poller.register(fd, events)
    return bool(poller.poll(wait * 1000))


class TlsConnection(Connection):
    """A connection by TLS, with hands shaken.

    What is unsent are records. Reading makes some too, which leave with what is written next if
    the kernel has no room for them.
    """

    def __init__(self, sock: socket.socket, records: Records) -> None:
        super().__init__(sock)
        self._lock = threading.Lock()  # of the records: never held while waiting, nor while another is asked for
        self._records = records

    def write(self, data: bytes) -> None:
        with self._lock:
            try:
                self._records.write(data)
            except OSError:
                self.shut()  # whoever leads finds the end of the stream
                return
            super().write(self._records.output())

    @property
    def unwritten(self) -> int:
        return 0  # it is not known of records how much is in them

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
            if not plaintext:
                raise ConnectionResetError("the node closed the connection")
        return plaintext or None


class TlsLineConnection(TlsConnection, LineConnection):
    """The connection of a line by TLS, with hands shaken."""

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
