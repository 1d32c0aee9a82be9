"""A crowd of clients on one selector loop, each of them making random calls, and a note of what became of every call.

A client knows no manners: it pipelines, cancels, walks away in the middle of anything, and comes back. What it does is
drawn from one seeded generator; when it happens is up to the machine, so a seed repeats the mixture, not the moment.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgpack

from skywalker.wire import junction as wire
from tests import history

BUSY_TOPICS: Final = 12
QUIET_TOPICS: Final = 200
TIMEOUTS_MS: Final = (0, 10, 50, 200, 500, 1500)
CALLS_AT_A_TIME: Final = 10
BURSTS: Final = (1, 1, 2, 4)
"""Calls that a client makes at once, all of one kind on one topic."""

PAUSE_S: Final = 0.12
"""Mean pause of a client between two acts: what a crowd of 80 then asks for is about half of what two cores can do."""

RESET: Final = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Connection:
    """One connection's life. `lost` says when it ended, by whom that was wished."""

    label: str
    opened: float
    worker: int | None = None  # its slot, once it has said so
    lost: float | None = None
    by_us: bool = False


@dataclass(slots=True)
class Call:
    """One call and what became of it; times are those of time.monotonic()."""

    connection: Connection
    id: int
    kind: str  # send, recv or take
    topic: str
    start: float
    timeout_s: float
    value: str | None = None  # what a send sends, what a listener got
    group: str | None = None
    end: float | None = None
    outcome: str = "open"  # then met, timeout, the code of an error, lost, or still open at the very end
    cancelled: float | None = None  # when its client asked for that

    @property
    def label(self) -> str:
        """A name that no other call has."""
        return f"{self.connection.label}/{self.id}"

    def recorded(self) -> history.Call:
        """Return the call as a history has it."""
        met = history.Outcome.TRUE if self.kind == "send" else history.Outcome.VALUE
        outcomes = {"met": met, "timeout": history.Outcome.TIMEOUT, "lost": history.Outcome.LOST,
                    "open": history.Outcome.UNANSWERED}  # fmt: skip
        outcome = outcomes.get(self.outcome, history.Outcome.ERROR)
        return history.Call(
            self.label, history.Kind(self.kind), self.topic, self.connection.label, self.start, self.timeout_s,
            group=self.group, value=self.value, outcome=outcome,
            code=self.outcome if outcome is history.Outcome.ERROR else "",
            end=math.inf if self.end is None else self.end,
        )  # fmt: skip


@dataclass
class Crowd:
    """All clients. `run()` has them act, `finish()` waits for the answers to what they have asked."""

    port: int
    count: int
    random: random.Random
    calls: list[Call] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)  # what no server may do, whatever happens to it
    slowest_turn_s: float = 0.0  # of this loop: by so much what it notes may be late
    acting: bool = True

    def __post_init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = itertools.count()
        self.clients = [Client(self, number) for number in range(self.count)]

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Have `act` called at that time."""
        heapq.heappush(self._timers, (when, next(self._ties), act))

    def run(self, seconds: float) -> None:
        """Have the clients act for so long."""
        for client in self.clients:
            client.connect()
            self.at(time.monotonic() + self.random.expovariate(1 / PAUSE_S), client.act)
        self._loop(time.monotonic() + seconds, lambda: False)

    def finish(self, seconds: float) -> None:
        """Let nobody begin anything; wait until all is answered, or that long, and close."""
        self.acting = False
        self._loop(time.monotonic() + seconds, lambda: not any(client.open for client in self.clients))
        for client in self.clients:
            client.lose(by_us=True, outcome="open")
        self.selector.close()

    def _loop(self, until: float, done: Callable[[], bool]) -> None:
        while time.monotonic() < until and not done():
            wait = min(until, self._timers[0][0] if self._timers else until) - time.monotonic()
            ready = self.selector.select(max(0.0, wait))
            began = time.monotonic()
            for key, _ in ready:
                key.data()
            while self._timers and self._timers[0][0] <= time.monotonic():
                heapq.heappop(self._timers)[2]()
            self.slowest_turn_s = max(self.slowest_turn_s, time.monotonic() - began)


class Client:
    """One of the crowd, with one connection at a time."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.crowd = crowd
        self.number = number
        self.open: dict[int, Call] = {}
        self._socket: socket.socket | None = None
        self._connection = Connection("", 0.0)
        self._generation = 0
        self._ids = itertools.count(1)
        self._cancels: dict[int, Call] = {}
        self._buffer = b""
        self._leaving = False

    def connect(self) -> None:
        """Open the next connection."""
        self._generation += 1
        self._connection = Connection(f"{self.number}.{self._generation}", time.monotonic())
        self.crowd.connections.append(self._connection)
        self._ids = itertools.count(1)
        self._buffer = b""
        self._leaving = False
        # The kernel of a loopback address completes this, whatever the worker does.
        self._socket = socket.create_connection(("127.0.0.1", self.crowd.port), 5)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.crowd.selector.register(self._socket, selectors.EVENT_READ, self._read)
        self._write([":hello", 0, {}])

    def lose(self, *, by_us: bool, outcome: str = "lost", reset: bool = False) -> None:
        """End the connection, and with it what is open on it."""
        if self._socket is None:
            return
        self.crowd.selector.unregister(self._socket)
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._socket.close()
        self._socket = None
        now = time.monotonic()
        self._connection.lost, self._connection.by_us = now, by_us
        for call in self.open.values():
            call.outcome, call.end = outcome, None if outcome == "open" else now
        self.open.clear()
        self._cancels.clear()

    def act(self) -> None:
        """Do something, and plan the next act."""
        crowd, dice = self.crowd, self.crowd.random
        if not crowd.acting:
            return
        crowd.at(time.monotonic() + dice.expovariate(1 / PAUSE_S), self.act)
        if self._socket is None:
            self.connect()
        elif self._leaving:
            if not self.open:
                self.lose(by_us=True)
        elif dice.random() < 0.01:
            self.lose(by_us=True, reset=dice.random() < 0.7)
        elif dice.random() < 0.06 and (open_calls := [call for call in self.open.values() if call.cancelled is None]):
            self._cancel(dice.choice(open_calls))
        elif len(self.open) < CALLS_AT_A_TIME:
            busy = dice.random() < 0.7
            topic = f"busy-{dice.randrange(BUSY_TOPICS)}" if busy else f"quiet-{dice.randrange(QUIET_TOPICS)}"
            kind = dice.choices(("send", "recv", "take"), (5, 3, 3))[0]
            for _ in range(dice.choice(BURSTS)):
                self._call(kind, topic, dice)

    def _call(self, kind: str, topic: str, dice: random.Random) -> None:
        if self._socket is None:
            return  # lost as the call before this one was written
        timeout_ms = dice.choice(TIMEOUTS_MS)
        id = next(self._ids)
        call = Call(self._connection, id, kind, topic, time.monotonic(), timeout_ms / 1000)
        frame: list[Any] = [f":{kind}!", id, timeout_ms, topic]
        if kind == "send":
            call.value = call.label
            frame.append(call.value)
        elif kind == "take":
            call.group = dice.choice("ab")
            frame.append(call.group)
        self.crowd.calls.append(call)
        self.open[id] = call
        self._write(frame)

    def _cancel(self, call: Call) -> None:
        id = next(self._ids)
        call.cancelled = time.monotonic()
        self._cancels[id] = call
        self._write([":cancel", id, call.id])

    def _write(self, frame: list[Any]) -> None:
        assert self._socket is not None
        body = msgpack.packb(frame)
        data = len(body).to_bytes(2, "big") + body
        try:
            # Calls are small and few at a time: a socket that has no room for one has long lost its server.
            sent = self._socket.send(data)
        except OSError:
            self._lost()
        else:
            assert sent == len(data)

    def _read(self) -> None:
        if self._socket is None:
            return  # lost by an act of this same turn
        try:
            data = self._socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        now = time.monotonic()
        self._buffer += data
        while len(self._buffer) >= 2 and len(self._buffer) >= (end := 2 + int.from_bytes(self._buffer[:2], "big")):
            method, id, result = msgpack.unpackb(self._buffer[2:end], strict_map_key=False)
            self._answered(method, id, result, now)
            self._buffer = self._buffer[end:]
        if not data:
            self._lost()

    def _lost(self) -> None:
        self.lose(by_us=False)

    def _answered(self, method: str, id: int, result: Any, now: float) -> None:
        error = None
        if isinstance(result, msgpack.ExtType) and result.code == wire.ERROR_TYPE:
            error = msgpack.unpackb(result.data)[0]
        if id == 0:
            self._connection.worker = None if error else result["worker"]
        elif id in self._cancels:
            self._cancel_answered(id, result)
        elif id in self.open:
            self._call_answered(self.open.pop(id), result, error, now)
        else:
            self.crowd.complaints.append(f"{self._connection.label}: {method} {id} was answered twice: {result!r}")
        if error == "draining":
            self._leaving = True

    def _cancel_answered(self, id: int, result: Any) -> None:
        call = self._cancels.pop(id)
        # The call was answered before its :cancel, unless it is to end otherwise.
        if (result is True) is not (call.outcome == "cancelled"):
            self.crowd.complaints.append(f"{call}: its :cancel was answered {result!r}")

    def _call_answered(self, call: Call, result: Any, error: str | None, now: float) -> None:
        call.end = now
        if error:
            call.outcome = error
        elif result == msgpack.ExtType(wire.TIMEOUT_TYPE, b"\0"):
            call.outcome = "timeout"
        else:
            call.outcome = "met"
            if call.kind != "send":
                call.value = result
            elif result is not True:
                self.crowd.complaints.append(f"{call}: a send was answered {result!r}")
