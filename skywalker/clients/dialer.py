"""Makes connections, a step at a time, so that whoever dials can stop at its own deadline and another go on."""

from __future__ import annotations

import errno
import os
import random
import select
import socket
import time
from typing import Any, Final

from skywalker.address import Address
from skywalker.clients.routes import Dial, source_port

ATTEMPT_S: Final = 5.0
"""Seconds for one address to accept: three lost packets at the usual one second, then two."""

_PORTS_TRIED: Final = 8
"""Source ports that are tried, since some are in use."""

_IDLE_S, _INTERVAL_S, _COUNT = 15, 5, 3
_UNACKNOWLEDGED_MS: Final = 30_000
"""With these the kernel notices within half a minute that a node's machine is gone, with calls in flight or without."""

_OPTIONS: Final = (
    ("SOL_SOCKET", "SO_KEEPALIVE", 1),
    ("IPPROTO_TCP", "TCP_NODELAY", 1),
    ("IPPROTO_TCP", "TCP_KEEPIDLE", _IDLE_S),
    ("IPPROTO_TCP", "TCP_KEEPINTVL", _INTERVAL_S),
    ("IPPROTO_TCP", "TCP_KEEPCNT", _COUNT),
    ("IPPROTO_TCP", "TCP_USER_TIMEOUT", _UNACKNOWLEDGED_MS),
)


def tune(sock: socket.socket) -> None:
    """Have small frames leave at once and a dead peer noticed, as far as the system knows the options."""
    for level, option, value in _OPTIONS:
        if hasattr(socket, option):
            sock.setsockopt(getattr(socket, level), getattr(socket, option), value)


def is_own_echo(sock: socket.socket) -> bool:
    """Whether a socket was connected to itself, as can happen on a free port that the system hands out."""
    return bool(sock.getsockname() == sock.getpeername())


def cause_of(error: Exception) -> str:
    """Return in a few words why a connection was lost or not made."""
    if isinstance(error, TimeoutError):
        return str(error) or f"no answer within {ATTEMPT_S:g} s"
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno).lower()  # asyncio words it otherwise
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def direct_socket(family: int, dial: Dial) -> socket.socket:
    """Return a socket, yet to be connected, from which a connection meets the worker that is wanted; it never blocks.

    Raises OSError if there is none.
    """
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        tune(sock)
        if dial.worker is not None:
            _bind_to_steer(sock, dial)
    except BaseException:
        sock.close()
        raise
    return sock


def _bind_to_steer(sock: socket.socket, dial: Dial) -> None:
    for attempt in range(_PORTS_TRIED):
        try:
            sock.bind(("", source_port(dial, random.random())))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or attempt == _PORTS_TRIED - 1:
                raise
        else:
            return


class Dialer:
    """Dials one address, over and over. Not for use by two threads at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._not_before = 0.0
        self._candidates: list[tuple[int, Any]] = []  # families and addresses still to be tried
        self._socket: socket.socket | None = None  # the attempt under way
        self._give_up_at = 0.0

    def pause(self, seconds: float) -> None:
        """Let this much time pass before the next attempt."""
        self._not_before = time.monotonic() + seconds

    def close(self) -> None:
        """Give up the attempt under way, if any."""
        self._candidates.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def advance(self, until: float) -> socket.socket | None:
        """Go on dialling, to `until` at most; return the connection once there is one.

        Raises OSError when every address that the host has was tried in vain.
        """
        now = time.monotonic()
        if now < self._not_before:
            time.sleep(max(0.0, min(until, self._not_before) - now))
            if time.monotonic() < self._not_before:
                return None
        while True:
            try:
                return self._attempt(until)
            except OSError:
                self._drop_attempt()
                if not self._candidates:
                    raise

    def _attempt(self, until: float) -> socket.socket | None:
        if self._socket is None:
            self._socket = self._begin()
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        if not poller.poll(max(0.0, min(until, self._give_up_at) - time.monotonic()) * 1000):
            if time.monotonic() >= self._give_up_at:
                raise TimeoutError(f"no answer within {ATTEMPT_S:g} s")
            return None
        error = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        if is_own_echo(self._socket):
            raise ConnectionRefusedError("connection refused")
        sock, self._socket = self._socket, None
        self._candidates.clear()
        sock.setblocking(True)
        return sock

    def _begin(self) -> socket.socket:
        if not self._candidates:
            try:
                found = socket.getaddrinfo(self._address.host, self._address.port, type=socket.SOCK_STREAM)
            except UnicodeError as error:
                raise OSError(f"{self._address.host!r} cannot be a host name") from error
            self._candidates = [(family, address) for family, _, _, _, address in found]
        family, address = self._candidates.pop(0)
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            tune(sock)
            sock.connect_ex(address)  # how it went is asked of the socket later
        except OSError:
            sock.close()
            raise
        self._give_up_at = time.monotonic() + ATTEMPT_S
        return sock

    def _drop_attempt(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
