"""A crowd: many connections to a node, with calls of recv! that wait on them."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from bench.errors import BenchError, Stalled, Unreachable
from bench.load.dial import Greeting, dial, greeting_in
from bench.load.plan import Load
from bench.servers.peer import Opening
from skywalker import limits
from skywalker.errors import RequestError
from skywalker.ring import token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split

PER_ADDRESS: Final = 20_000
"""Connections from one address of this machine: it has some 28,000 ports to give to them."""

SPARE_FILES: Final = 100
"""Descriptors that a process needs besides its connections."""

MAX_FILES: Final = 1_000_000
"""Of a process to which no bound is set."""

SETTLE_S: Final = 0.5
"""Seconds for the server to do what it does after a crowd has come, before it is measured."""

PATIENCE_S: Final = 30.0

_HELLO: Final = wire.frame(wire.HELLO, values.pack("here"), values.pack({}))
"""Who has said it hears why it is refused."""

_PING: Final = wire.frame(wire.PING, values.pack("here"))
_PONG: Final = wire.frame(wire.PING, values.pack("here"), wire.TRUE)


class Connection(NamedTuple):
    """An open connection, and what the node said of itself."""

    socket: socket.socket
    greeting: Greeting | None


class Crowd(contextlib.ExitStack):
    """Connections to one node; all are closed on leaving. What is done raises BenchError."""

    def __init__(self, load: Load, say: Callable[[str], None] = lambda words: None) -> None:
        """`say` is told how far it has come."""
        super().__init__()
        self._load = load
        self._say = say
        self._open: list[Connection] = []

    def connect(self, count: int) -> None:
        """Have so many connections."""
        if count + SPARE_FILES > (allowed := files_allowed()):
            words = f"{count + SPARE_FILES} open files are needed and {allowed} allowed"
            raise BenchError(f"{words}; ulimit -Hn {count + SPARE_FILES} raises that, as root")
        for number in range(len(self._open), count):
            if number % 1000 == 0:
                self._say(f"{number:,} connections")
            self._open.append(_connect(self._load, number))
            self.enter_context(self._open[-1].socket)
        self._settle()

    def call(self, calls: int, topics: int | None = None, *, forwarded: bool = False) -> float:
        """Have so many calls wait on each connection; return which part of them came to a worker that forwards them.

        Each has a topic of its own, or they share so many; with `forwarded`, all topics belong to another worker than
        the one that a connection came to.
        """
        elsewhere = 0
        for number, connection in enumerate(self._open):
            if number % 100 == 0:
                self._say(f"{number * calls:,} calls waiting")
            numbers = itertools.count(number << 24) if topics is None else itertools.cycle(range(topics))
            names = (values.pack(f"idle/{each}") for each in numbers)
            chosen, foreign = _choose(names, calls, connection.greeting, forwarded=forwarded)
            _send(connection.socket, _calls(chosen))
            elsewhere += foreign
        self._settle()
        return elsewhere / (len(self._open) * calls or 1)

    def _settle(self) -> None:
        """Wait until the server has dealt with all that was sent: a :ping is answered after what came before it."""
        for connection in self._open:
            _send(connection.socket, _PING)
        for connection in self._open:
            reply = _heard(connection.socket)
            if reply != _PONG:
                raise BenchError(_refused(reply))
        time.sleep(SETTLE_S)


def settings(connections: int, calls: int) -> dict[str, int]:
    """Return the limits of a node that lets so many connections in, and so many calls wait on each."""
    return {
        "max_connections": connections + SPARE_FILES,
        "max_calls": max(calls, limits.Limits().max_calls),
        "waiting_bytes": 2 * limits.WAITING_CALL_BYTES * connections * calls + limits.Limits().waiting_bytes,
    }


def files_allowed() -> int:
    """Let this process, and those that it starts, have as many files open as they may; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return MAX_FILES if hard == resource.RLIM_INFINITY else hard


def _connect(load: Load, number: int) -> Connection:
    source = ""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(load.host) in ipaddress.ip_network("127.0.0.0/8"):
            source = f"127.0.0.{2 + number // PER_ADDRESS}"
    try:
        link, heard = dial(load, Opening(_HELLO, lambda heard: split(heard)[0]), source)
    except Unreachable as error:
        raise Unreachable(f"connection {number + 1:,} failed: {error}") from error
    with contextlib.closing(link):
        if _refusal(heard) is not None:
            raise BenchError(_refused(heard))
        sock = socket.socket(fileno=os.dup(link.fileno()))  # both are one connection, without TLS
    sock.settimeout(PATIENCE_S)
    return Connection(sock, greeting_in(heard))


def _choose(
    topics: Iterator[bytes], count: int, greeting: Greeting | None, *, forwarded: bool
) -> tuple[list[bytes], int]:
    """Return so many topics for the calls of a connection, and how many of them belong to another worker.

    All do if `forwarded`. Raises BenchError if that is wanted of one worker, or if it is not said who owns what.
    """
    if greeting is None or len(greeting.tokens) < 2:
        if forwarded:
            raise BenchError("only a node of several workers forwards calls")
        return [*itertools.islice(topics, count)], 0
    ring = greeting.ring()
    is_foreign = {False: 0, True: 0}
    chosen: list[bytes] = []
    while len(chosen) < count:
        topic = next(topics)
        foreign = ring.owner(token_of(topic)).worker != greeting.worker
        if foreign or not forwarded:
            chosen.append(topic)
            is_foreign[foreign] += 1
    return chosen, is_foreign[True]


def _calls(topics: Sequence[bytes]) -> bytes:
    timeout = values.pack(limits.MAX_TIMEOUT_MS)
    return b"".join(wire.frame(wire.RECV, values.pack(call), timeout, topic) for call, topic in enumerate(topics))


def _send(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except OSError as error:
        raise Unreachable(f"a connection was lost: {error.strerror or error}") from error


def _heard(sock: socket.socket) -> bytes:
    try:
        return sock.recv(65536)
    except TimeoutError:
        raise Stalled(f"the server did not answer within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise Unreachable(f"a connection was lost: {error.strerror or error}") from error


def _refusal(reply: bytes) -> RequestError | None:
    try:
        return wire.refusal(values.unpack(split(reply)[0][0][-1]))
    except (ValueError, IndexError, TypeError):
        return None


def _refused(reply: bytes) -> str:
    if not reply:
        return "the server closed a connection"
    error = _refusal(reply)
    if error is None:
        return f"the server gave an answer that was not expected: {reply[:80]!r}"
    return f"the server refused: {error} ({error.code}); its limits must allow for the test"
