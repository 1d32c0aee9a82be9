"""What waiting costs: memory of connections and of calls that wait on them, CPU time, and how long turns get.

The server's memory is read with nothing, with the connections, and with calls that wait on all of
them. It is the proportional set size of its processes, what they share counted once, or the resident set size where
that may not be read. What the kernel holds for sockets is not in it, nor the agent, which shows how long turns take. At
the end all of the connections are closed at once, and what is left of the memory is read again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import itertools
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import click
import psutil

from bench.errors import BenchError, Stalled, Unreachable
from bench.figures import target
from bench.figures.command import Findings, command, fenced, show_progress
from bench.figures.targets import Target
from bench.load.dial import Greeting, dial, greeting_in
from bench.load.plan import Load
from bench.servers.peer import Opening
from bench.servers.turns import LOOKS_BACK_S, Turns
from bench.servers.usage import Watch, tree
from skywalker import limits
from skywalker.embedding import AGENT
from skywalker.errors import RequestError
from skywalker.ring import Ring, token_of
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

GIVEN_BACK: Final = 0.9
"""The part of the memory of connections and calls that counts as given back; Python and malloc keep a little."""

GIVEN_BACK_S: Final = 10.0
CONNECTION_BYTES: Final = 1200
CALL_BYTES: Final = 200
FORWARDED_BYTES: Final = 300
TURN_MS: Final = 5.0
"""What is wanted, at most."""

MANY: Final = 1000
MANY_CALLS: Final = 1_000_000
"""With fewer connections, or calls, it is too easy, or what the first ones cost is too much of it."""

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
    forwarded: float  # the part of the calls that another worker owns
    turn_s: float | None  # CPU time of the longest turn of a worker while calls came and waited, where it is shown
    seconds: float  # in which nothing happened
    cores: float  # kept busy in them
    closing_turn_s: float | None  # of the longest turn when all connections were closed at once
    left_bytes: int  # after that, once it was given back, or too late
    given_back_s: float

    @property
    def connection_bytes(self) -> float:
        """Memory of one connection."""
        return (self.connected_bytes - self.empty_bytes) / self.connections

    @property
    def call_bytes(self) -> float | None:
        """Memory of one call that waits, its connection not counted; None if there were none."""
        count = self.connections * self.calls
        return (self.waiting_bytes - self.connected_bytes) / count if count else None

    def targets(self) -> Iterator[Target]:
        """Yield every target that can be judged by what was measured."""
        if self.connections >= MANY:
            each = self.connection_bytes
            yield Target("bytes of an idle connection", each, CONNECTION_BYTES, at_most=True, form=",.0f")
        wanted = {0.0: CALL_BYTES, 1.0: FORWARDED_BYTES}.get(self.forwarded)
        if self.call_bytes is not None and wanted is not None:
            name = "call that is forwarded" if self.forwarded else "waiting call"
            yield Target(f"bytes of a {name}", self.call_bytes, wanted, at_most=True, form=",.0f")
        count = f"{self.connections * self.calls:,} calls"
        turns = {f"with {count} waiting": self.turn_s, f"when the connections of {count} close": self.closing_turn_s}
        if self.connections * self.calls >= MANY_CALLS:
            for words, seconds in turns.items():
                what = f"ms of the longest turn, {words}"
                if seconds is not None:
                    yield Target(what, seconds * 1000, TURN_MS, at_most=True, form=".1f")
        yield Target("s until memory is given back", self.given_back_s, GIVEN_BACK_S, at_most=True, form=".1f")

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
            if self.forwarded:
                yield f"  {'forwarded':<12}{self.forwarded:>10.0%} of them, to the worker that owns their topic"
        yield f"  {'idle':<12}{self.cores:>10.2%} of a core, over {self.seconds:g} s"
        if self.turn_s is not None:
            yield f"  {'turns':<12}{self.turn_s * 1000:>10.1f} ms of CPU time for the longest"
        yield f"  {'all closed':<12}{self.left_bytes / limits.MIB:>10,.1f} MiB after {self.given_back_s:.1f} s"
        if self.closing_turn_s is not None:
            yield f"  {'':<12}{self.closing_turn_s * 1000:>10.1f} ms of CPU time for the longest turn"


class Connection(NamedTuple):
    """An open connection, and what the node said of itself."""

    socket: socket.socket
    greeting: Greeting | None


def measure(
    node: target.Target,
    connections: int,
    calls: int,
    seconds: float,
    *,
    forwarded: bool = False,
    say: Callable[[str], None] = lambda words: None,
) -> Idleness:
    """Open connections, make calls that wait, and read what the server uses at each step. Raises BenchError.

    With `forwarded`, all topics belong to another worker than the one that a connection came to.
    """
    if node.pid is None:
        raise BenchError(f"the processes of {node.address} cannot be seen from here; name the first one with --pid")
    load = Load(node.address.host, node.address.port, patience_s=PATIENCE_S)
    _allow_files(connections + SPARE_FILES)
    with contextlib.ExitStack() as stack:
        open_: list[Connection] = []
        elsewhere = 0
        Turns(node.admin).longest_s()  # who is asked for it for the first time takes memory once
        time.sleep(SETTLE_S)
        kind, empty = _memory(node.pid)
        for number in range(connections):
            if number % 1000 == 0:
                say(f"{number:,} connections")
            open_.append(_connect(load, number))
            stack.enter_context(open_[-1].socket)
        _await_all(open_)
        _, connected = _memory(node.pid)
        with Turns.watched(node.admin) as turns:
            for number, connection in enumerate(open_):
                if number % 100 == 0:
                    say(f"{number * calls:,} calls waiting")
                topics, foreign = _topics(number, calls, connection.greeting, forwarded=forwarded)
                _send(connection.socket, _calls(topics))
                elsewhere += foreign
            _await_all(open_)
            turn_s = turns.longest_s()
        _, waiting = _memory(node.pid)
        say(f"idle for {seconds:g} s")
        watch = Watch(node.pid)
        time.sleep(seconds)
        usage = watch.end()
        if usage is None:
            raise Unreachable("the server has ended")
        cores = sum(each.cores for each in usage.processes if each.name != AGENT)
        if node.admin is not None:
            time.sleep(max(0.0, LOOKS_BACK_S - seconds))  # or a turn from before would be taken for one of the end
        with Turns.watched(node.admin) as turns:
            began = time.monotonic()
            stack.close()
            wanted = waiting - GIVEN_BACK * (waiting - empty)
            while (left := _memory(node.pid)[1]) > wanted and time.monotonic() < began + GIVEN_BACK_S:
                time.sleep(SETTLE_S)
            given_back_s = time.monotonic() - began
            closing_turn_s = turns.longest_s()
    return Idleness(
        *(connections, calls, kind, empty, connected, waiting, elsewhere / (connections * calls or 1)),
        *(turn_s, seconds, cores, closing_turn_s, left, given_back_s),
    )


def _allow_files(count: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if count > hard != resource.RLIM_INFINITY:
        raise BenchError(f"{count} open files are needed and {hard} allowed; ulimit -Hn {count} raises that, as root")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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


def _topics(number: int, count: int, greeting: Greeting | None, *, forwarded: bool) -> tuple[list[bytes], int]:
    """Return topics for the calls of a connection, and how many of them belong to another worker, all if `forwarded`.

    Raises BenchError if that is wanted where it is not known who owns what, or there is only one.
    """
    if greeting is None or len(greeting.tokens) < 2:
        if forwarded:
            raise BenchError("only a node of several workers forwards calls")
        return [values.pack(f"idle/{number}/{call}") for call in range(count)], 0
    ring = Ring(greeting.tokens)
    topics: list[bytes] = []
    elsewhere = 0
    for call in itertools.count():
        if len(topics) == count:
            return topics, elsewhere
        topic = values.pack(f"idle/{number}/{call}")
        foreign = ring.owner(token_of(topic)) != greeting.worker
        if foreign or not forwarded:
            topics.append(topic)
            elsewhere += foreign
    raise AssertionError("there are always more topics")


def _calls(topics: Sequence[bytes]) -> bytes:
    timeout = values.pack(limits.MAX_TIMEOUT_MS)
    return b"".join(wire.frame(wire.RECV, values.pack(call), timeout, topic) for call, topic in enumerate(topics))


def _send(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except OSError as error:
        raise Unreachable(f"a connection was lost: {error.strerror or error}") from error


def _await_all(connections: Sequence[Connection]) -> None:
    """Wait until the server has dealt with all that was sent: a :ping is answered after what came before it."""
    for connection in connections:
        _send(connection.socket, _PING)
    for connection in connections:
        reply = _heard(connection.socket)
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
    """Return what is measured and how much it is, for process `pid` and all below it but the agent."""
    processes = [process for process in tree(pid) if process.name() != AGENT]
    try:
        return "PSS", sum(process.memory_full_info().pss for process in processes)
    except (psutil.AccessDenied, AttributeError):
        return "RSS", sum(process.memory_info().rss for process in processes)
    except psutil.NoSuchProcess as error:
        raise Unreachable("a process of the server has ended") from error


@command(json=True, markdown=["idle"])
@target.target_options
@click.option("--connections", type=click.IntRange(1, 1_000_000), default=1000, help="Connections to open.")
@click.option("--calls", type=click.IntRange(0, 100_000), default=10, help="Calls of recv! that wait on each.")
@click.option("--forwarded", is_flag=True, help="Have all topics belong to another worker than a connection came to.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=5.0, metavar="N", help="How long to be idle.")
def idle_test(
    target: Callable[..., contextlib.AbstractContextManager[target.Target]],
    connections: int,
    calls: int,
    forwarded: bool,
    seconds: float,
) -> Findings:
    """Open connections on which calls wait, and show what memory and CPU time they take of the server.

    Memory is the proportional set size (PSS) of its processes but the agent, or resident set size (RSS) where that
    cannot be read; what the kernel holds for sockets is not in it. How long turns take is shown of a node that is
    started for this. That gets limits that allow it, too; one that runs must have max_connections, max_calls and
    waiting_bytes to match.
    """
    room = {
        "admin": True,
        "max_connections": connections + SPARE_FILES,
        "max_calls": max(calls, limits.Limits().max_calls),
        "waiting_bytes": 2 * limits.WAITING_CALL_BYTES * connections * calls + limits.Limits().waiting_bytes,
    }
    with target(**room) as node:
        found = measure(node, connections, calls, seconds, forwarded=forwarded, say=show_progress)
    lines = ["", f"  {'node':<12}{node.words}", "", *found.lines()]
    place = "forwarded" if forwarded else "idle"
    return Findings(lines, found.to_data(), {place: fenced(lines[1:])}, targets=[*found.targets()])
