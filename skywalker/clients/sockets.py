"""The sockets of clients: how they are set up, and for how long one is tried."""

from __future__ import annotations

import socket
from typing import Any, Final

from skywalker.address import Address
from skywalker.clients.core import Dial
from skywalker.clients.machine import Machine
from skywalker.dialling import bind_to_steer

ATTEMPT_S: Final = 5.0
"""Seconds for one address to accept, and shake hands by TLS: three lost packets at the usual one second, then two."""

HASTY_S: Final = 1.5
"""The same while there are other addresses to try: one lost packet."""

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
    if sock.family == socket.AF_UNIX:
        return  # both ends are of one kernel
    for level, option, value in _OPTIONS:
        if hasattr(socket, option):
            sock.setsockopt(getattr(socket, level), getattr(socket, option), value)


def numeric(address: Address) -> tuple[socket.AddressFamily, Any]:
    """Return the family and the form that sockets want of a numeric address. Raises OSError for any other."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except UnicodeError as error:  # of a zone that nothing can be named
        raise OSError(f"{address.host!r} is no numeric address") from error
    family, _, _, _, form = found[0]
    return family, form


def direct_socket(family: socket.AddressFamily, dial: Dial, machine: Machine) -> socket.socket:
    """Return a socket, yet to be connected, from which a connection meets the worker that is wanted; it never blocks.

    Raises OSError if there is none.
    """
    sock = machine.tcp(family)
    try:
        tune(sock)
        if dial.worker is not None:
            bind_to_steer(sock, dial.worker, dial.workers, machine.random)
    except BaseException:
        sock.close()
        raise
    return sock
