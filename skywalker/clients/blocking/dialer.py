"""Makes connections, a step at a time, so that whoever dials can stop at its own deadline and another go on."""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import time
from typing import TYPE_CHECKING, Any, Final

from skywalker.address import Address
from skywalker.clients.homes import Homes, Round
from skywalker.clients.settings import Settings
from skywalker.clients.sockets import ATTEMPT_S, HASTY_S, tune
from skywalker.dialling import begin, cause_of, is_own_echo, server_name
from skywalker.discovery.source import Source
from skywalker.errors import DiscoveryError
from skywalker.tls.words import CLOSED, NO_TLS, SILENT

if TYPE_CHECKING:
    import ssl

    from skywalker.tls.records import Records


_HEAD_BYTES: Final = 5
"""Of a TLS record: a byte that says what it is, two of the version, two of how much follows."""

_KINDS: Final = range(20, 24)
_MAJOR_VERSION: Final = 3


class Opening:
    """One attempt: it is connected, then, where TLS is spoken, hands are shaken. Nothing waits here.

    Its socket, which never blocks, has begun to connect.
    """

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


DIAL_STEP_S: Final = 0.1
"""Seconds for which a thread that dials is deaf to close()."""


class Dialer:
    """Dials the addresses at which there may be a node, over and over. Not for use by two threads at a time."""

    def __init__(self, settings: Settings, homes: Homes) -> None:
        self._settings = settings
        self._homes = homes
        self._source: Source | None = None
        self._round: Round | None = None
        self.address: Address | None = None
        """The one that is dialled, or was last."""
        self._not_before = 0.0
        self._candidates: list[tuple[int, Any]] = []  # what its host's name stands for, still to be tried
        self._opening: Opening | None = None  # the attempt under way
        self._give_up_at = 0.0

    def pause(self, seconds: float) -> None:
        """Let this much time pass before the next attempt."""
        self._not_before = time.monotonic() + seconds

    def interrupt(self) -> None:
        """Have whoever dials, in another thread, not wait for the source any more; nothing can be asked of it then.

        A look at Consul cannot be ended: one under way takes up to eight seconds more.
        """
        if self._source is not None:
            self._source.close()

    @property
    def cause(self) -> str:
        """Why there is no connection so far, empty if nothing was tried."""
        if self._round is None:
            return ""
        if self._opening is not None and self._opening.records is not None:
            return self._round.cause(self._settings.where, cause_of(self._opening.too_late()))
        return self._round.cause(self._settings.where)

    def close(self) -> None:
        """Give up the attempt under way, if any."""
        self._round = None
        self._candidates.clear()
        self._drop_attempt()

    def advance(self, until: float) -> Opening | None:
        """Go on dialling, to `until` at most; return the connection once there is one, that blocks from now on.

        Raises OSError when every address that there is was tried in vain. What looks addresses up may take longer.
        """
        now = time.monotonic()
        if now < self._not_before:
            time.sleep(max(0.0, min(until, self._not_before) - now))
            if time.monotonic() < self._not_before:
                return None
        if self._round is None:
            self._round = Round(self._homes, random.random)
            self._go_on(self._round)
        while True:
            try:
                return self._attempt(self._round, until)
            except OSError as error:
                self._drop_attempt()
                if not self._candidates:
                    assert self.address is not None
                    self._round.failed(self.address, cause_of(error))
                    self._go_on(self._round)

    def _go_on(self, round: Round) -> None:
        """Turn to the next address. Raises OSError if there is none."""
        self.address = round.next()
        if self.address is None and not round.is_complete:
            try:
                self._source = self._source or self._settings.source()
                round.found(self._source.addresses())
            except DiscoveryError as error:
                round.trouble(str(error))
            self.address = round.next()
        if self.address is None:
            self._round = None
            raise ConnectionError(round.cause(self._settings.where))

    def _attempt(self, round: Round, until: float) -> Opening | None:
        if self._opening is None:
            self._opening = self._begin(round)
        opening = self._opening
        poller = select.poll()
        is_open = False
        while not is_open:
            poller.register(opening.socket, opening.events)
            if not poller.poll(max(0.0, min(until, self._give_up_at) - time.monotonic()) * 1000):
                if time.monotonic() >= self._give_up_at:
                    raise opening.too_late()
                return None
            try:
                is_open = opening.advance()
            except BaseException:
                self._drop_attempt()  # an exception may have come halfway through it
                raise
        self._opening = None
        self._round = None
        self._candidates.clear()
        opening.socket.setblocking(True)
        return opening

    def _begin(self, round: Round) -> Opening:
        assert self.address is not None
        if not self._candidates:
            self._candidates = _candidates(self.address)
        family, form = self._candidates.pop(0)
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            tune(sock)
            begin(sock, form)
        except OSError:
            sock.close()
            raise
        self._give_up_at = time.monotonic() + (ATTEMPT_S if round.is_last else HASTY_S)
        return Opening(sock, self.address.host, self._settings.tls)

    def _drop_attempt(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.socket.close()


def _candidates(address: Address) -> list[tuple[int, Any]]:
    """Return what sockets can be connected to for an address: family and form, several for some names."""
    if address.is_unix:
        return [(socket.AF_UNIX, address.path)]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{address.host!r} cannot be a host name") from error
    return [(family, form) for family, _, _, _, form in found]
