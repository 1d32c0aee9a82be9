"""A connection that is being made: it is connected, then, where TLS is spoken, hands are shaken. Nothing waits here."""

from __future__ import annotations

import contextlib
import os
import select
import socket
from typing import TYPE_CHECKING, Final

from skywalker.dialling import is_own_echo, server_name
from skywalker.tls.words import CLOSED, NO_TLS, SILENT

if TYPE_CHECKING:
    import ssl

    from skywalker.tls.records import Records

_HEAD_BYTES: Final = 5
"""Of a TLS record: a byte that says what it is, two of the version, two of how much follows."""

_KINDS: Final = range(20, 24)
_MAJOR_VERSION: Final = 3


class Opening:
    """One attempt. Its socket, which never blocks, has begun to connect."""

    def __init__(self, sock: socket.socket, host: str, tls: ssl.SSLContext | None) -> None:
        """`host` is what the certificate of the other end must have."""
        self.socket = sock
        self.events = select.POLLOUT
        """What has to happen until advance() is of use, as poll and epoll call it."""
        self.records: Records | None = None
        """Our end of TLS, if that is spoken."""
        self._tls = tls
        self._host = server_name(host)
        self._record = b""  # of the other end, as far as it is here
        self._unsent = b""

    def advance(self) -> bool:
        """Go on as far as that is possible at once; return whether the connection is there. Raises OSError if not."""
        if self.records is None:
            error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            if is_own_echo(self.socket):
                raise ConnectionRefusedError("connection refused")
            if self._tls is None:
                return True
            self.records = self._begin(self._tls)
        return self._shake_hands(self.records)

    def too_late(self) -> OSError:
        """Return the error that says that it takes too long."""
        if self.records is None:
            return TimeoutError()
        return ConnectionError(SILENT)

    def _begin(self, tls: ssl.SSLContext) -> Records:
        from skywalker.tls.records import Records  # only now: it loads OpenSSL

        try:
            return Records(tls, server_hostname=self._host)
        except ValueError as error:
            raise OSError(f"{self._host!r} cannot be a name in a certificate") from error

    def _shake_hands(self, records: Records) -> bool:
        while True:
            if not records.established:
                try:
                    records.shake_hands()
                finally:
                    self._unsent += records.output()
                    self._write()
            elif self._unsent:
                self._write()
            if records.established:
                self.events = select.POLLOUT
                return not self._unsent
            self.events = select.POLLIN | (select.POLLOUT if self._unsent else 0)
            if not self._read():
                return False
            record, self._record = self._record, b""
            records.feed(record)

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # a connection that is broken says so when it is read
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]

    def _read(self) -> bool:
        """Return whether the next record is there, as a whole. What is behind it stays where a poll can see it."""
        while missing := self._missing():
            try:
                data = self.socket.recv(missing)
            except BlockingIOError:
                return False
            except ConnectionError:
                data = b""
            if not data:
                raise ConnectionResetError(CLOSED)
            self._record += data
            if len(self._record) > 1 and (self._record[0] not in _KINDS or self._record[1] != _MAJOR_VERSION):
                raise ConnectionError(NO_TLS)
        return True

    def _missing(self) -> int:
        size = _HEAD_BYTES
        if len(self._record) >= _HEAD_BYTES:
            size += int.from_bytes(self._record[3:_HEAD_BYTES], "big")
        return size - len(self._record)
