"""The sockets that processes share, and who has which end.

    what                made by      kept open by                       closed by
    address lock        supervisor   supervisor                         its end
    listener, 1/worker  supervisor   supervisor and the slot's worker   both, when the node drains
    Unix listener       supervisor   supervisor and every worker        all, when the node drains
    admin listener      supervisor   supervisor and agent               their ends
    channel             supervisor   supervisor one end, child other    whoever dies first
    link                supervisor   the two workers, one end each      whoever dies first

The supervisor keeps its copy of each listener, so that connections in the accept queue of a
worker that died wait for its successor; closing the last copy resets them. It keeps no copy
of a link: the worker at one end must read an end as soon as the other is dead.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import stat
from typing import Final

from skywalker.address import Address
from skywalker.claim import claim_name
from skywalker.errors import LocalProtocolError
from workers.steering import steer

KEEPALIVE_IDLE_S: Final = 60
KEEPALIVE_INTERVAL_S: Final = 10
KEEPALIVE_PROBES: Final = 3
UNACKNOWLEDGED_MS: Final = 30_000
"""Milliseconds in which a peer's kernel must acknowledge what we sent, or the connection is dead."""

UNSENT_BYTES: Final = 128 * 1024
"""Bytes that the kernel takes for a peer beyond those that are on their way: for one that never reads it would take
megabytes, and each of a hundred such connections have us make as many answers."""

WILDCARDS: Final = frozenset(("0.0.0.0", "::"))

LINK_BUFFER: Final = 1024 * 1024
"""Bytes asked for in a link's send buffer. The kernel grants about 416 KiB to an ordinary user."""


class AddressError(Exception):
    """The address cannot be listened on; the text says why in one line."""


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Return the family and the address to bind. Raises AddressError if the host has no address here."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise AddressError(f"{host} is no address of this machine: {error.strerror}") from error
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


def claim(host: str, port: int, *, is_ours: bool = False) -> socket.socket:
    """Make this process the only skywalker on the address and return the socket that holds the claim.

    SO_REUSEPORT lets a second server of the same user join a port in silence. An abstract
    Unix socket has one owner in a network namespace, and goes with it. Whether some other
    server is there is looked at unless the port `is_ours` already.
    """
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if port:  # one that the kernel chooses is nobody's yet
            lock.bind(claim_name(host, port))
        if port and not is_ours:
            family, address = resolve(host, port)
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                # Not the option under which others may join: any server there makes this fail.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen(1)
    except OSError as error:
        lock.close()
        raise AddressError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return lock


def listeners(host: str, port: int, count: int, backlog: int) -> tuple[list[socket.socket], bool]:
    """Return `count` listeners on one address, port 0 being any free one, and whether source ports choose among them.

    Raises AddressError if the address cannot be listened on.
    """
    made: list[socket.socket] = []
    try:
        for _ in range(count):
            family, address = resolve(host, port)
            listener = socket.socket(family, socket.SOCK_STREAM)
            made.append(listener)
            tune(listener)  # what is set there, each accepted connection inherits
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.setblocking(False)
            listener.bind(address)
            listener.listen(backlog)
            port = listener.getsockname()[1]
    except OSError as error:
        for listener in made:
            listener.close()
        raise AddressError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return made, steer(made)


def unix_listener(path: str, backlog: int) -> socket.socket:
    """Return a listener on a Unix socket at `path`, in the place of one that nobody listens on any more.

    Raises AddressError if it cannot be had.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    # Who may come in is said by what the kernel tells of them, or by a token.
    before = os.umask(0o111)
    try:
        try:
            listener.bind(path)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not _is_abandoned(path):
                raise
            os.unlink(path)
            listener.bind(path)
        listener.listen(backlog)
    except OSError as error:
        listener.close()
        raise AddressError(f"cannot listen on {path}: {error.strerror or error}") from error
    finally:
        os.umask(before)
    return listener


def _is_abandoned(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return stat.S_ISSOCK(os.stat(path).st_mode) and probe.connect_ex(path) == errno.ECONNREFUSED


def advertised(address: str, bind: str, port: int) -> Address:
    """Return where others reach a node that listens there: what `address` says, or what can be found out.

    Raises AddressError if it names no host and port.
    """
    try:
        if address:
            given = Address.parse(address)
            return Address(resolve(given.host, given.port)[1][0], given.port)
    except (AddressError, LocalProtocolError) as error:
        raise AddressError(f"cannot be reached at {address}: {error}") from error
    family, (host, _) = resolve(bind, port)
    if host not in WILDCARDS:
        return Address(host, port)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel only says from which address it would be.
            probe.connect(("192.0.2.1" if family == socket.AF_INET else "2001:db8::1", 9))
            return Address(str(probe.getsockname()[0]), port)
        except OSError:
            return Address("127.0.0.1" if family == socket.AF_INET else "::1", port)


def near(bind: str, port: int) -> Address:
    """Return where a node that listens there is reached from its own machine."""
    family, (host, _) = resolve(bind, port)
    if host in WILDCARDS:
        host = "127.0.0.1" if family == socket.AF_INET else "::1"
    return Address(host, port)


def tune(sock: socket.socket) -> None:
    """Have small writes leave at once, a dead peer noticed, and little taken for one that does not read."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def link() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a link between workers. It keeps packets whole, so a death cuts none in half."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LINK_BUFFER)
        end.setblocking(False)
    return ends


def allow_many_files() -> None:
    """Raise this process's limit of open files to the most it may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
