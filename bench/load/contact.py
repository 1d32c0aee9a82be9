"""Connections to a node, and to which of its workers they came."""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Final, NamedTuple

from bench.errors import BenchError, Unreachable
from bench.load.plan import Load
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split

DIALS_PER_WORKER: Final = 32
"""Connections tried for each worker of a node before one that was not met is given up: the kernel deals them out by
hash, so that of eight workers one is missed by all 256 once in 10^15."""

_HELLO: Final = wire.frame(wire.HELLO, values.pack(1), values.pack({"name": "skywalker-bench"}))


class Greeting(NamedTuple):
    """What a node says of itself."""

    worker: int  # which one answers
    tokens: dict[int, list[int]]  # of each worker
    version: str


class Contact(NamedTuple):
    """An open connection, and what the node said on it if it was asked."""

    sock: socket.socket
    greeting: Greeting | None

    @property
    def worker(self) -> int | None:
        """The worker it came to, if that is known."""
        return self.greeting.worker if self.greeting else None


def contact(load: Load) -> Contact:
    """Connect to the node of a load. Raises Unreachable, or BenchError if a direct load finds no :hello."""
    try:
        sock = socket.create_connection((load.host, load.port), load.patience_s)
    except OSError as error:
        raise Unreachable(f"cannot connect to {load.host}:{load.port}: {error.strerror or error}") from error
    with contextlib.ExitStack() as unless_it_answers:
        unless_it_answers.enter_context(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greeting = None
        # A node of the first kind knows no :hello, and need not be asked.
        if load.direct or load.dialect == "current":
            try:
                greeting = _greeting(sock)
            except OSError as error:
                raise Unreachable(f"{load.host}:{load.port} does not answer: {error.strerror or error}") from error
        if load.direct and greeting is None:
            raise BenchError(f"{load.host}:{load.port} does not say who owns what; try it without --direct")
        sock.setblocking(False)
        unless_it_answers.pop_all()
    return Contact(sock, greeting)


def _greeting(sock: socket.socket) -> Greeting | None:
    sock.sendall(_HELLO)
    frames: list[Any] = []
    data = b""
    while not frames:
        received = sock.recv(65536)
        if not received:
            raise ConnectionResetError(0, "the connection was closed at once")
        frames, data = split(data + received)
    try:
        match values.unpack(frames[0][2]):
            case {"worker": int(worker), "tokens": dict(tokens), "version": str(version)}:
                return Greeting(worker, tokens, version)
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
            spare.sock.close()
        self._spare.clear()
