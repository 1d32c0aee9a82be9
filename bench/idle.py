"""What waiting costs: memory of connections and of calls that wait on them, CPU time, and how long turns get.

The server's memory is read with nothing, with the connections, and with calls that wait on all of
them. It is the proportional set size of its processes, what they share counted once, or the resident set size where
that may not be read. What the kernel holds for sockets is not in it, nor the agent, which shows how long turns take. At
the end all of the connections are closed at once, and what is left of the memory is read again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from bench.errors import BenchError, Unreachable
from bench.figures import target
from bench.figures.command import Findings, command, fenced, show_progress
from bench.figures.targets import Target
from bench.load import crowd
from bench.load.plan import Load
from bench.servers.turns import LOOKS_BACK_S, Turns
from bench.servers.usage import Watch, memory
from skywalker import limits
from skywalker.embedding import AGENT

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
    load = Load(node.address.host, node.address.port, patience_s=crowd.PATIENCE_S)
    with crowd.Crowd(load, say) as waiters:
        Turns(node.admin).longest_s()  # who is asked for it for the first time takes memory once
        time.sleep(crowd.SETTLE_S)
        kind, empty = memory(node.pid)
        waiters.connect(connections)
        _, connected = memory(node.pid)
        with Turns.watched(node.admin) as turns:
            elsewhere = waiters.call(calls, forwarded=forwarded)
            turn_s = turns.longest_s()
        _, waiting = memory(node.pid)
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
            waiters.close()
            wanted = waiting - GIVEN_BACK * (waiting - empty)
            while (left := memory(node.pid)[1]) > wanted and time.monotonic() < began + GIVEN_BACK_S:
                time.sleep(crowd.SETTLE_S)
            given_back_s = time.monotonic() - began
            closing_turn_s = turns.longest_s()
    return Idleness(
        *(connections, calls, kind, empty, connected, waiting, elsewhere),
        *(turn_s, seconds, cores, closing_turn_s, left, given_back_s),
    )


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
    with target(admin=True, **crowd.settings(connections, calls)) as node:
        found = measure(node, connections, calls, seconds, forwarded=forwarded, say=show_progress)
    lines = ["", f"  {'node':<12}{node.words}", "", *found.lines()]
    place = "forwarded" if forwarded else "idle"
    return Findings(lines, found.to_data(), {place: fenced(lines[1:])}, targets=[*found.targets()])
