"""A transport whose other end speaks TLS: that of clients and of other nodes ends here, that of the console in
agent/admin/tls.py.

Plaintext counts as written once the kernel has its whole record, so that what is said of written
values is as true as without TLS. What is encrypted cannot be taken back: as long as it is not
written, the next send() has to begin with the same bytes.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from skywalker.tls.records import Records
from workers.engine.transport import Name

DROPPED_READS: Final = 128
"""Reads of a connection that is closed, at most: more than a kernel has room for, usually."""

READ_BYTES: Final = 64 * 1024

RECORD: Final = 16 * 1024
"""Bytes of plaintext in the largest record: so much at most is encrypted and waits to be written."""


class SecureSocket:
    """One connection. Nothing waits here."""

    __slots__ = ("_records", "_socket", "_unsent", "begun")

    def __init__(self, sock: socket.socket, records: Records) -> None:
        self._socket = sock
        self._records = records
        self._unsent = b""  # ciphertext
        self.begun = 0  # of plaintext, in the record that is not written whole

    @property
    def ended(self) -> bool:
        return self._records.ended

    @property
    def established(self) -> bool:
        """Whether hands are shaken."""
        return self._records.established

    def names(self) -> tuple[str, ...]:
        return self._records.names()

    def getsockname(self) -> Name:
        return self._socket.getsockname()  # type: ignore[no-any-return]  # of a TCP socket

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._socket.setsockopt(level, option, value)

    def fileno(self) -> int:
        return self._socket.fileno()

    def detach(self) -> int | None:
        return None

    def shake_hands(self) -> bool:
        """Go on with the handshake as far as what has come allows; return whether it is done.

        Raises BlockingIOError if nothing has come, OSError (an SSLError, if it failed) if there will be none.
        """
        data = self._socket.recv(READ_BYTES)
        self._records.feed(data)
        if not data:
            raise ConnectionResetError(None, "the other end went away")
        try:
            return self._records.shake_hands()
        finally:
            self._say()

    def hello(self) -> None:
        """Begin the handshake, as a client."""
        self._records.shake_hands()
        self._say()

    def recv(self, size: int) -> bytes:
        if self._records.ended:
            return b""
        try:
            self._records.feed(self._socket.recv(size))
        except BlockingIOError:
            data = self._records.read()  # what came with the end of the handshake
        else:
            try:
                data = self._records.read()
            finally:
                self._say()
        if not data and not self._records.ended:
            raise BlockingIOError
        return data

    def send(self, data: bytes) -> int:
        gone = 0  # in whole records
        while gone < len(data):
            if not self.begun:
                piece = memoryview(data)[gone : gone + RECORD]
                self._records.write(piece)
                self.begun = len(piece)
            if not self._flush():
                break
            gone += self.begun
            self.begun = 0
        if not gone and data:
            raise BlockingIOError
        return gone

    def _flush(self) -> bool:
        """Write ciphertext; return whether all that there was is written."""
        while self._unsent or self._begin_to_write():
            try:
                sent = self._socket.send(self._unsent)
            except BlockingIOError:
                return False
            self._unsent = self._unsent[sent:]
            if self._unsent:
                return False
        return True

    def _begin_to_write(self) -> bool:
        self._unsent = self._records.output()
        return bool(self._unsent)

    def _say(self) -> None:
        """Write what TLS itself has to say, if there is room; else it goes with what is written next."""
        if not self.begun:
            with contextlib.suppress(OSError):  # a connection that is broken says so when it is read
                self._flush()

    def shutdown(self, how: int) -> None:
        self._records.close()
        self._say()
        with contextlib.suppress(OSError):  # as above, and as the core does of one without TLS
            self._socket.shutdown(how)

    def close(self) -> None:
        """Close it, with a word for the other end if that can be written."""
        if self._records.established:
            self._records.close()
            self._say()
        # With something unread the kernel would reset the connection, and drop what was written.
        with contextlib.suppress(OSError):
            for _ in range(DROPPED_READS):
                if not self._socket.recv(READ_BYTES):
                    break
        self._socket.close()
