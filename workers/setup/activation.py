"""Listeners that the manager has opened for this node, as sd_listen_fds(3) has it: they outlive it, so they are there
while it is started anew.

There must be one for each worker. The node could not add any: the kernel lets nobody but the
user who opened the first listener of a port open another, and that was the manager.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import Final

from skywalker.journal.record import DOORS
from workers.engine.sockets import AddressError, tune
from workers.stats.metrics import UNKNOWN

FIRST: Final = 3
"""The descriptor of the first one; those of the others follow."""

VARIABLES: Final = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES")

MOST: Final = 4096
"""Listeners that are taken: there are no more workers."""

_NAMES: Final = tuple(door for door in DOORS if door != UNKNOWN)


def inherited(environ: MutableMapping[str, str], pid: int) -> dict[str, list[socket.socket]]:
    """Return the listeners by door, each door's in the order in which they listen; none if the process `pid` got none.

    They are closed in what is executed later, and gone from the environment. Raises AddressError, with none left open,
    if one of them is not what it should be.
    """
    told = {name: environ.pop(name, "") for name in VARIABLES}
    if told["LISTEN_PID"] != str(pid) or not told["LISTEN_FDS"]:
        return {}
    made = [_opened(FIRST + number) for number in range(_count(told["LISTEN_FDS"]))]
    try:
        return _by_door(made, told["LISTEN_FDNAMES"].split(":"))
    except AddressError:
        for each in made:
            if each is not None:
                each.close()
        raise


def _count(told: str) -> int:
    if not (told.isascii() and told.isdecimal() and len(told) <= 9 and int(told) <= MOST):
        raise AddressError(f"LISTEN_FDS is {told[:64]!r}, not a number of sockets up to {MOST}: the manager sets it")
    return int(told)


def _opened(fd: int) -> socket.socket | None:
    try:
        os.set_inheritable(fd, False)
        return socket.socket(fileno=fd)
    except OSError:
        return None


def _by_door(made: list[socket.socket | None], names: list[str]) -> dict[str, list[socket.socket]]:
    found: dict[str, list[socket.socket]] = {}
    for number, each in enumerate(made):
        name = names[number] if number < len(names) else "unknown"
        if name not in _NAMES:
            known = " or ".join(_NAMES)
            raise AddressError(f"the manager passed a socket named {name!r}: set FileDescriptorName= to {known}")
        wrong = _wrong(each)
        if each is None or wrong:
            raise AddressError(f"the manager passed a socket for {name} that {wrong}")
        each.setblocking(False)
        tune(each)
        found.setdefault(name, []).append(each)
    for name, listeners in found.items():
        addresses = {each.getsockname()[:2] for each in listeners}
        if len(addresses) > 1:
            told = ", ".join(f"{host}:{port}" for host, port in sorted(addresses))
            raise AddressError(f"the manager passed sockets for {name} that listen at {told}: give one address only")
    if len({len(listeners) for listeners in found.values()}) > 1:
        told = " and ".join(f"{len(listeners)} for {name}" for name, listeners in found.items())
        raise AddressError(f"the manager passed sockets, {told}: give one of each for each worker")
    return found


def _wrong(sock: socket.socket | None) -> str:
    """Return what keeps it from being a worker's listener, and what to do about it; nothing if it can be one."""
    if sock is None:
        return "is none at all"
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or sock.type != socket.SOCK_STREAM:
        return "is not one of TCP: use ListenStream= with a port"
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return "does not listen: use ListenStream= and Accept=no"
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT):
        return "its workers cannot share: set ReusePort=yes"
    return ""
