"""Connections to a server, and to which of a node's workers they came."""

from __future__ import annotations

import contextlib
import functools
import select
import socket
from typing import Final, NamedTuple

from bench.errors import BenchError, Unreachable
from bench.load.plan import Load
from bench.servers.peer import Opening
from skywalker.members import PlaceRing, shared
from skywalker.tls.contexts import client_context
from skywalker.tls.records import Records
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from workers.engine.secure_socket import SecureSocket
from workers.engine.transport import PlainSocket, Transport

READ_BYTES: Final = 256 * 1024
"""The most that is read at a time."""


class Line:
    """An open connection, to be read whenever the epoll says so. What has no room in it now is written then."""

    __slots__ = ("_epoll", "_link", "_unsent", "closed")

    def __init__(self, link: Transport, epoll: select.epoll) -> None:
        self.closed = False
        self._unsent = b""
        self._link = link
        self._epoll = epoll
        epoll.register(link, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor of its socket."""
        return self._link.fileno()

    def write(self, data: bytes) -> None:
        """Write, now or as soon as there is room. Raises Unreachable."""
        had_unsent = bool(self._unsent)
        data = self._unsent + data
        try:
            sent = self._link.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if sent < len(data) or had_unsent:
            self._unsent = data[sent:]
            self._epoll.modify(self._link, select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0))

    def read(self, most: int = READ_BYTES) -> bytes | None:
        """Return what has come, None if nothing has. Raises Unreachable, at the end too."""
        if self._unsent:
            self.write(b"")
        try:
            data = self._link.recv(most)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Unreachable(f"a connection was lost: {error.strerror}") from error
        if not data:
            raise Unreachable("the server closed a connection")
        return data

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._link.close()


DIALS_PER_WORKER: Final = 32
"""Connections tried for each worker of a node before one that was not met is given up: the kernel deals them out by
hash, so that of eight workers one is missed by all 256 once in 10^15."""

_context_of: Final = functools.cache(client_context)
"""The same for every connection: to read the files of authorities each time would be most of the work."""


class Greeting(NamedTuple):
    """What a node says of itself."""

    worker: int  # which one answers
    tokens: dict[int, list[int]]  # of each worker
    slicing: int  # the rule by which they share topics
    version: str

    def ring(self) -> PlaceRing:
        """Return which worker owns a topic, of the node by itself."""
        return PlaceRing(shared("", self.tokens, self.slicing))


class Contact(NamedTuple):
    """An open connection, and what the node said on it if it was asked."""

    link: Transport
    greeting: Greeting | None

    @property
    def worker(self) -> int | None:
        """The worker it came to, if that is known."""
        return self.greeting.worker if self.greeting else None


def dial(load: Load, opening: Opening, source: str = "") -> tuple[Transport, bytes]:
    """Connect to the server of a load, maybe from some address, and begin; return what was heard as well.

    Raises Unreachable.
    """
    where = f"{load.host}:{load.port}"
    try:
        sock = socket.create_connection((load.host, load.port), load.patience_s, (source, 0) if source else None)
    except OSError as error:
        raise Unreachable(f"cannot connect to {where}: {error.strerror or error}") from error
    heard = b""
    with contextlib.ExitStack() as unless_it_answers:
        unless_it_answers.enter_context(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link: Transport = _secure(sock, load) if load.ca else PlainSocket(sock)
        try:
            said = opening.said
            while said:
                said = said[link.send(said) :]
            while opening.said and not opening.is_answered(heard):
                with contextlib.suppress(BlockingIOError):  # of TLS: half a record
                    data = link.recv(READ_BYTES)
                    if not data:
                        raise Unreachable(f"{where} closed a new connection; it said {heard[-200:]!r}")
                    heard += data
        except OSError as error:
            words = f"{where} does not answer: {error.strerror or error}; it said {heard[-200:]!r}"
            raise Unreachable(words) from error
        sock.setblocking(False)
        unless_it_answers.pop_all()
    return link, heard


def _secure(sock: socket.socket, load: Load) -> SecureSocket:
    link = SecureSocket(sock, Records(_context_of(load.ca), server_hostname=load.host))
    try:
        link.hello()
        while not link.shake_hands():
            pass
    except OSError as error:
        raise Unreachable(f"{load.host} does not speak TLS as it should: {error}") from error
    return link


def contact(load: Load) -> Contact:
    """Connect to the node of a load. Raises Unreachable, or BenchError if a direct load finds no :hello."""
    # A node of the first kind knows no :hello, and need not be asked.
    if not (load.direct or load.token or load.dialect == "current"):
        return Contact(dial(load, Opening())[0], None)
    options = {"name": "skywalker-bench"} | ({"token": load.token} if load.token else {})
    hello = wire.frame(wire.HELLO, values.pack(1), values.pack(options))
    link, heard = dial(load, Opening(hello, lambda heard: split(heard)[0]))
    greeting = greeting_in(heard)
    if greeting is None and (load.token or (load.strict and wire.HELLO not in heard)):
        link.close()
        raise Unreachable(f"{load.host}:{load.port} does not let us in; it said {heard[-200:]!r}")
    if greeting is None and load.direct:
        link.close()
        raise BenchError(f"{load.host}:{load.port} does not say who owns what; try it without --direct")
    return Contact(link, greeting)


def greeting_in(heard: bytes) -> Greeting | None:
    """Return what a node says of itself in its answer to :hello, None if it is no such answer."""
    try:
        match values.unpack(split(heard)[0][0][2]):
            case {"worker": int(worker), "tokens": dict(tokens), "version": str(version)} as answer:
                return Greeting(worker, tokens, answer.get("slicing", 0), version)
    except (ValueError, IndexError):
        pass
    return None


class Contacts:
    """Makes connections, to a certain worker where that is wanted; those without a use yet are kept till close()."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._spare: list[Contact] = []

    def greeting(self) -> Greeting | None:
        """Return what the node says of itself, if it was asked. Raises BenchError."""
        self._spare.append(contact(self._load))
        return self._spare[-1].greeting

    def meet(self, worker: int | None, workers: int = 1) -> Contact:
        """Return a connection to one of the node's `workers`; to any if that is None, or is not met in many tries.

        Raises BenchError.
        """
        for at, spare in enumerate(self._spare):
            if worker in (None, spare.worker):
                return self._spare.pop(at)
        if worker is None:
            return contact(self._load)
        for _ in range(DIALS_PER_WORKER * workers):
            found = contact(self._load)
            if found.worker == worker:
                return found
            self._spare.append(found)
        return self._spare.pop()

    def close(self) -> None:
        """Close what is left over."""
        for spare in self._spare:
            spare.link.close()
        self._spare.clear()
