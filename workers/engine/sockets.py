"""The sockets that processes share, and who has which end.

    what                made by      kept open by                       closed by
    listener, 1/worker  supervisor   supervisor and the slot's worker   both, when the node drains
    copy of a listener  supervisor   siblings of a worker that crashed  they, once it has a successor
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
import fcntl
import os
import resource
import socket
import stat
from collections.abc import Sequence
from typing import Final

from skywalker.address import Address
from skywalker.errors import LocalProtocolError
from skywalker.listeners import listeners_at, reason, taken_by, unix_reason
from workers.engine.machine import Machine
from workers.engine.steering import steer
from workers.engine.transport import Transport

KEEPALIVE_IDLE_S: Final = 60
KEEPALIVE_INTERVAL_S: Final = 10
KEEPALIVE_PROBES: Final = 3
UNACKNOWLEDGED_S: Final = 30.0
"""Seconds in which a peer's kernel must acknowledge what we sent, at most, or the connection is dead."""

UNSENT_BYTES: Final = 128 * 1024
"""Bytes that the kernel takes for a peer beyond those that are on their way: for one that never reads it would take
megabytes, and each of a hundred such connections have us make as many answers."""

WILDCARDS: Final = frozenset(("0.0.0.0", "::"))

ADMIN_BACKLOG: Final = 128
"""Connections that may wait at the admin server, also while the agent is replaced."""

TRIES: Final = 10
"""Times to try for an address that nobody listens on, and that others try for at the same moment."""

LINK_BUFFER: Final = 1024 * 1024
"""Bytes asked for in a link's send buffer. The kernel grants about 416 KiB to an ordinary user."""


class AddressError(Exception):
    """The address cannot be listened on; the text says why in one line."""


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Return the family and the address to bind. Raises AddressError if the host has no address here."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise AddressError(f"{host} is not an address of this machine: {error.strerror}") from error
    family, _, _, _, address = found[0]
    return family, (str(address[0]), int(address[1]))


def listeners(host: str, port: int, count: int, backlog: int) -> tuple[list[socket.socket], bool]:
    """Return `count` listeners on one address, port 0 being any free one, and whether source ports choose among them.

    SO_REUSEPORT would let a second node of the same user join in silence. So the first of them begins without that
    option, which the kernel refuses as long as anybody listens there, and gets it once it listens, unless it is the
    only one. A node needs no other claim to its address, and so none that another user could have taken before it.

    Raises AddressError if the address cannot be listened on.
    """
    assert count > 0
    family, address = resolve(host, port)
    made: list[socket.socket] = []
    try:
        made.append(_sole_listener(family, address, backlog))
        address = made[0].getsockname()[:2]
        if count > 1:
            made[0].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        for _ in range(count - 1):
            made.append(_unbound(family))
            made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            made[-1].bind(address)
            made[-1].listen(backlog)
    except OSError as error:
        for listener in made:
            listener.close()
        raise unavailable(error, host, address[1]) from error
    assert len({each.getsockname() for each in made}) == 1, "also where the port was any"
    return made, steer(made)


def _sole_listener(family: socket.AddressFamily, address: tuple[str, int], backlog: int) -> socket.socket:
    """Return a listener where nobody else listens, and nobody can join it. Raises OSError."""
    for tries_left in reversed(range(TRIES)):
        listener = _unbound(family)
        try:
            listener.bind(address)  # refused if somebody listens there
        except OSError:
            listener.close()
            raise
        try:
            listener.listen(backlog)
        except OSError:
            listener.close()
            # Of two that have bound it at the same moment the kernel lets one listen, or none.
            if not tries_left:
                raise
            continue
        break
    return listener


def admin_listener(host: str, port: int) -> socket.socket:
    """Return a listener that is the only one on its address. Raises AddressError if that cannot be had."""
    family, address = resolve(host, port)
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(ADMIN_BACKLOG)
    except OSError as error:
        made.close()
        raise unavailable(error, host, port) from error
    return made


def _unbound(family: socket.AddressFamily) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    tune(listener)  # what is set there, each accepted connection inherits
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.setblocking(False)
    return listener


def keep_to_ourselves(inherited: Sequence[socket.socket]) -> None:
    """See that nobody else has, or has joined, the listeners that a manager has opened.

    Raises AddressError if another node has got them as well, or somebody else listens there.
    """
    host, port = inherited[0].getsockname()[:2]
    try:
        # The lock is this process's, be the listeners many's: they are files, with no name that others could open.
        fcntl.lockf(inherited[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise AddressError(
            f"cannot listen on {host}:{port}: the manager passed its listeners to another node as well, "
            f"{taken_by(host, port)}: end that one"
        ) from error
    ours = {os.fstat(each.fileno()).st_ino for each in inherited}
    if any(each.inode not in ours for each in listeners_at(host, port)):
        raise AddressError(f"cannot listen on {host}:{port}: others listen there beside the manager: end them")


def unavailable(error: OSError, host: str, port: int) -> AddressError:
    """Return the error that tells why that address cannot be listened on."""
    return AddressError(f"cannot listen on {host}:{port}: {reason(error, resolve(host, port)[1][0], port)}")


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
        why = unix_reason(path) if error.errno == errno.EADDRINUSE else error.strerror or error
        raise AddressError(f"cannot listen on {path}: {why}") from error
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
    end_unacknowledged(sock, UNACKNOWLEDGED_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def end_unacknowledged(sock: Transport | socket.socket, seconds: float) -> None:
    """Have a connection end once its peer's kernel has acknowledged nothing of what we sent for so long."""
    milliseconds = int(1000 * min(seconds, UNACKNOWLEDGED_S))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, milliseconds))  # 0 would be the kernel's own


def link(machine: Machine) -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a link between workers."""
    ends = machine.pair()
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LINK_BUFFER)
    return ends


def allow_many_files() -> None:
    """Raise this process's limit of open files to the most it may have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
