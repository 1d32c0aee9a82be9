"""Who listens at the addresses of this machine, as the kernel tells it in numbers: nobody can forge a line."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Final, NamedTuple

from skywalker import processes
from skywalker.processes import PROC

LISTENS: Final = "0A"
"""The state of a listener in /proc/net/tcp."""

_CREDENTIALS: Final = "3i"
"""What the kernel tells of who listens at a Unix socket: process, user, group."""

_SIZE: Final = struct.calcsize(_CREDENTIALS)


class Listener(NamedTuple):
    """A listening socket of this network namespace, and the user who made it."""

    host: str
    port: int
    user: int
    inode: int


def listeners(proc: Path = PROC) -> list[Listener]:
    """Return all there are; none if /proc does not tell."""
    found = []
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ...
            fields = line.split()
            if len(fields) > 9 and fields[3] == LISTENS:
                host, _, port = fields[1].partition(":")
                found.append(Listener(_host(host), int(port, 16), int(fields[7]), int(fields[9])))
    return found


def listeners_at(host: str, port: int, proc: Path = PROC) -> list[Listener]:
    """Return those that listen at that very address, by its number."""
    wanted = ipaddress.ip_address(host.partition("%")[0])
    return [each for each in listeners(proc) if each.port == port and ipaddress.ip_address(each.host) == wanted]


def in_the_way(host: str, port: int, proc: Path = PROC) -> list[Listener]:
    """Return the listeners that keep another from that address; a host that is a name may stand for any."""
    return [each for each in listeners(proc) if _meet(each, host, port)]


def reason(error: OSError, host: str, port: int) -> str:
    """Return why that address, by its number, cannot be listened on; of one that is in use, by whom."""
    if error.errno != errno.EADDRINUSE:
        return error.strerror or str(error)
    return f"{os.strerror(errno.EADDRINUSE)} by {taken_by(host, port)}"


def taken_by(host: str, port: int) -> str:
    """Return the words for who has an address that is in use, as far as one may see it."""
    there = in_the_way(host, port)
    if not there:
        return "a program that has bound it, and does not listen there"
    pids = set().union(*processes.holders({each.inode for each in there}).values())
    if pids:
        # A node, if it has them from systemd, which has them as well.
        return processes.described(min(pids, key=lambda pid: (processes.node_port(pid) is None, pid)))
    return f"a process of {processes.described_user(there[0].user)}: only that user and root can see which"


def unix_reason(path: str) -> str:
    """Return why a Unix socket whose path is in use cannot be listened on: because of whom."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
            pid, *_ = struct.unpack(_CREDENTIALS, probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _SIZE))
            who = processes.described(pid) if pid else "a process of another machine, in a container or outside of one"
        except OSError:  # it lets nobody in now, or is none
            who = "something that is not a socket, or that refuses connections"
    return f"{os.strerror(errno.EADDRINUSE)} by {who}"


def _host(written: str) -> str:
    """Return the address that is written as words of 32 bits in hexadecimal, each in the order of this machine."""
    words = (int(written[at : at + 8], 16) for at in range(0, len(written), 8))
    return str(ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words)))


def _meet(listener: Listener, host: str, port: int) -> bool:
    if listener.port != port:
        return False
    try:
        wanted = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return True
    there = ipaddress.ip_address(listener.host)
    if there.version != wanted.version:
        return there.version == 6 and there.is_unspecified  # as a rule IPv4 as well
    return there == wanted or there.is_unspecified or wanted.is_unspecified
