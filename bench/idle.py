"""What waiting costs: the memory of connections and of calls that wait on them, and CPU time while nothing happens.

The server's memory is read with nothing, with the connections, and with calls that wait on all of
them. It is the proportional set size of all its processes, what they share counted once, or the
resident set size where that may not be read. What the kernel holds for sockets is not in it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Final

import click
import psutil

from bench.errors import BenchError, Stalled, Unreachable
from bench.figures.command import show_progress, write_json
from bench.figures.target import Target, target_options
from bench.load.dial import dial
from bench.load.plan import Load
from bench.servers.peer import Opening
from bench.servers.usage import cpu_seconds, tree
from skywalker import limits
from skywalker.errors import RequestError
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split

PER_ADDRESS: Final = 20_000
"""Connections from one address of this machine: it has some 28,000 ports to give to them."""

SPARE_FILES: Final = 100
"""Descriptors that a process needs besides its connections."""

SETTLE_S: Final = 0.5
"""Seconds for the server to do what it does after a crowd has come, before it is measured."""

PATIENCE_S: Final = 30.0

_HELLO: Final = wire.frame(wire.HELLO, values.pack("here"), values.pack({}))
"""Who has said it hears why it is refused."""

_PING: Final = wire.frame(wire.PING, values.pack("here"))
_PONG: Final = wire.reply(wire.PING, values.pack("here"), wire.TRUE)


@dataclasses.dataclass(frozen=True, slots=True)
class Idleness:
    """What was found; memory in bytes, of all processes of the server."""

    connections: int
    calls: int  # on each connection
    measure: str  # of memory: PSS or RSS
    empty_bytes: int
    connected_bytes: int
    waiting_bytes: int
    seconds: float  # in which nothing happened
    cores: float  # kept busy in them

    @property
    def connection_bytes(self) -> float:
        """Memory of one connection."""
        return (self.connected_bytes - self.empty_bytes) / self.connections

    @property
    def call_bytes(self) -> float | None:
        """Memory of one call that waits, its connection not counted; None if there were none."""
        count = self.connections * self.calls
        return (self.waiting_bytes - self.connected_bytes) / count if count else None

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return dataclasses.asdict(self) | {"connection_bytes": self.connection_bytes, "call_bytes": self.call_bytes}

    def lines(self) -> Iterator[str]:
        """Yield it as a page."""
        yield f"  {'memory':<12}{self.empty_bytes / limits.MIB:>10,.1f} MiB with no connections ({self.measure})"
        yield f"  {'':<12}{self.connected_bytes / limits.MIB:>10,.1f} MiB with {self.connections:,} connections"
        per_connection = f"{self.connection_bytes:,.0f} bytes for each connection"
        if self.call_bytes is None:
            yield f"  {'':<12}{per_connection}"
        else:
            count = self.connections * self.calls
            yield f"  {'':<12}{self.waiting_bytes / limits.MIB:>10,.1f} MiB with {count:,} calls waiting on them"
            yield f"  {'each':<12}{self.connection_bytes:>10,.0f} bytes for a connection"
            yield f"  {'':<12}{self.call_bytes:>10,.0f} bytes for a waiting call"
        yield f"  {'idle':<12}{self.cores:>10.2%} of a core, over {self.seconds:g} s"


def measure(
    target: Target, connections: int, calls: int, seconds: float, say: Callable[[str], None] = lambda words: None
) -> Idleness:
    """Open connections, make calls that wait, and read what the server uses at each step. Raises BenchError."""
    if target.pid is None:
        raise BenchError(f"the processes of {target.address} cannot be seen from here; name the first one with --pid")
    load = Load(target.address.host, target.address.port, patience_s=PATIENCE_S)
    _allow_files(connections + SPARE_FILES)
    kind, empty = _memory(target.pid)
    with contextlib.ExitStack() as stack:
        sockets: list[socket.socket] = []
        for number in range(connections):
            if number % 1000 == 0:
                say(f"{number:,} connections")
            sockets.append(stack.enter_context(_connect(load, number)))
        _await_all(sockets)
        _, connected = _memory(target.pid)
        for number, sock in enumerate(sockets):
            if number % 1000 == 0:
                say(f"{number * calls:,} calls waiting")
            _send(sock, _calls(number, calls))
        _await_all(sockets)
        _, waiting = _memory(target.pid)
        say(f"idle for {seconds:g} s")
        began, used = time.monotonic(), cpu_seconds(target.pid)
        time.sleep(seconds)
        cores = (cpu_seconds(target.pid) - used) / (time.monotonic() - began)
    return Idleness(connections, calls, kind, empty, connected, waiting, seconds, cores)


def _allow_files(count: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if count > hard != resource.RLIM_INFINITY:
        raise BenchError(f"{count} open files are needed and {hard} allowed; ulimit -Hn {count} raises that, as root")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _connect(load: Load, number: int) -> socket.socket:
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
    return sock


def _calls(number: int, calls: int) -> bytes:
    timeout = values.pack(limits.MAX_TIMEOUT_MS)
    topics = (values.pack(f"idle/{number}/{call}") for call in range(calls))
    return b"".join(wire.frame(wire.RECV, values.pack(call), timeout, topic) for call, topic in enumerate(topics))


def _send(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except OSError as error:
        raise Unreachable(f"a connection was lost: {error.strerror or error}") from error


def _await_all(sockets: Sequence[socket.socket]) -> None:
    """Wait until the server has dealt with all that was sent: a :ping is answered after what came before it."""
    for sock in sockets:
        _send(sock, _PING)
    for sock in sockets:
        reply = _heard(sock)
        if reply != _PONG:
            raise BenchError(_refused(reply))
    time.sleep(SETTLE_S)


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


def _memory(pid: int) -> tuple[str, int]:
    """Return what is measured and how much it is, for process `pid` and all below it."""
    processes = tree(pid)
    try:
        return "PSS", sum(process.memory_full_info().pss for process in processes)
    except (psutil.AccessDenied, AttributeError):
        return "RSS", sum(process.memory_info().rss for process in processes)
    except psutil.NoSuchProcess as error:
        raise Unreachable("a process of the server has ended") from error


@click.command("idle", context_settings={"show_default": True})
@target_options
@click.option("--connections", type=click.IntRange(1, 1_000_000), default=1000, help="connections to open")
@click.option("--calls", type=click.IntRange(0, 100_000), default=10, help="recv! calls that wait on each")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=5.0, metavar="N", help="how long to be idle")
@click.option("--json", "json_file", type=click.File("w"), metavar="FILE", help="also write it as JSON")
def idle_test(
    target: Callable[..., contextlib.AbstractContextManager[Target]],
    connections: int,
    calls: int,
    seconds: float,
    json_file: IO[str] | None,
) -> None:
    """Open connections on which calls wait, and show what memory and CPU time they take of the server.

    Memory is the proportional set size (PSS) of all its processes, or resident set size (RSS) where that cannot be
    read; what the kernel holds for sockets is not in it. A node that is started for this gets limits that allow it;
    one that runs must have max_connections, max_calls and waiting_bytes to match.
    """
    room = {
        "max_connections": connections + SPARE_FILES,
        "max_calls": max(calls, limits.Limits().max_calls),
        "waiting_bytes": 2 * limits.WAITING_CALL_BYTES * connections * calls + limits.Limits().waiting_bytes,
    }
    try:
        with target(**room) as node:
            found = measure(node, connections, calls, seconds, show_progress)
    finally:
        show_progress("")
    click.echo(f"\n  {'node':<12}{node.words}\n")
    for line in found.lines():
        click.echo(line)
    click.echo()
    if json_file is not None:
        write_json(found.to_data(), json_file)
