"""Making a TCP connection without ever waiting for it: what clients and nodes have in common.

At a node that steers, a client chooses the worker that gets its connection by the source port: such a node gives it to
worker `(source port >> 1) % workers`. The lowest bit does not count, since the ports that connect() hands out by itself
share one parity.
"""

from __future__ import annotations

import errno
import os
import random
import socket
from collections.abc import Callable
from typing import Any, Final

from skywalker.cause import Cause

FIRST_PORT: Final = 32_769
LAST_PORT: Final = 60_999
"""Where Linux takes the ports of clients from by itself."""

PORTS_TRIED: Final = 8
"""Source ports that are worth trying, since some are in use."""


def source_port(worker: int, workers: int, luck: float) -> int:
    """Return a port that steers to `worker` of `workers`; `luck` is random, from 0 to below 1."""
    # Odd ones: connect() itself prefers the even ones, so these are free.
    first, last = FIRST_PORT >> 1, (LAST_PORT - 1) >> 1
    first += (worker - first) % workers
    count = (last - first) // workers + 1
    return (first + int(luck * count) * workers) << 1 | 1


def bind_to_steer(sock: socket.socket, worker: int, workers: int, luck: Callable[[], float] = random.random) -> None:
    """Give a socket a source port from which it meets `worker` of `workers`, at a node that steers.

    Raises OSError if there is none.
    """
    for attempt in range(PORTS_TRIED):
        try:
            sock.bind(("", source_port(worker, workers, luck())))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or attempt == PORTS_TRIED - 1:
                raise
        else:
            return


def begin(sock: socket.socket, form: Any) -> None:
    """Begin to connect a socket that does not block; how it goes on is asked of it once it can be written to.

    Raises OSError if it fails at once, since then it would have nothing to say.
    """
    error = sock.connect_ex(form)
    if error not in (0, errno.EINPROGRESS):
        raise OSError(error, os.strerror(error))


def server_name(host: str) -> str:
    """Return the name that the certificate of a host must have: a zone is no concern of the other end."""
    return host.partition("%")[0]


def is_own_echo(sock: socket.socket) -> bool:
    """Whether a socket was connected to itself, as can happen on a free port that the system hands out."""
    return bool(sock.getsockname() == sock.getpeername())


def is_connected(sock: socket.socket) -> bool:
    """Return whether one that can be written to now is; it may be told so of a socket that had its descriptor before.

    Raises OSError if it failed, ValueError if it met itself.
    """
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))
    try:
        if is_own_echo(sock):
            raise ValueError("it is connected to itself")
    except OSError as refusal:
        if refusal.errno == errno.ENOTCONN:
            return False
        raise
    return True


def cause_of(error: Exception) -> Cause:
    """Return in a few words why a connection was lost or not made."""
    if error.args and isinstance(error.args[0], Cause):
        return error.args[0]
    if isinstance(error, TimeoutError):
        return Cause("no answer in time")
    if type(error).__module__ == "ssl":
        from skywalker.tls.causes import tls_cause  # only now: it loads OpenSSL

        return tls_cause(error)
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return Cause(os.strerror(error.errno).lower())  # asyncio words it otherwise
    if isinstance(error, OSError) and error.strerror:
        return Cause(error.strerror.lower())
    return Cause(str(error) or type(error).__name__)
