"""One client of a crowd: a connection, the calls that it makes, and a note of what became of every one."""

from __future__ import annotations

import itertools
import math
import selectors
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgpack

from skywalker.wire import junction as wire
from tests import history

if TYPE_CHECKING:
    from tests.chaos.crowd import Crowd

RESET: Final = struct.pack("ii", 1, 0)

Dial = Callable[[], tuple[socket.socket, str]]
"""Connects to a node, and says its name. Raises OSError if that fails."""


@dataclass(slots=True)
class Connection:
    """One connection's life. `lost` says when it ended, by whom that was wished."""

    label: str
    opened: float
    node: str = ""  # the name of the node it is to, where there are several
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
                    "open": history.Outcome.UNANSWERED, "unknown-outcome": history.Outcome.UNKNOWN}  # fmt: skip
        outcome = outcomes.get(self.outcome, history.Outcome.ERROR)
        return history.Call(
            self.label, history.Kind(self.kind), self.topic, self.connection.label, self.start, self.timeout_s,
            group=self.group, value=self.value, outcome=outcome,
            code=self.outcome if outcome is history.Outcome.ERROR else "",
            end=math.inf if self.end is None else self.end,
        )  # fmt: skip


class Client:
    """Has one connection at a time. What it does with it is its kind's business."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.crowd = crowd
        self.number = number
        self.open: dict[int, Call] = {}
        self._socket: socket.socket | None = None
        self.connection = Connection("", 0.0)
        self._generation = 0
        self._ids = itertools.count(1)
        self._cancels: dict[int, Call] = {}
        self._buffer = b""
        self.leaving = False

    def connect(self) -> None:
        """Open the next connection, unless that fails."""
        self._generation += 1
        now = time.monotonic()
        try:
            self._socket, node = self.crowd.dial()
        except OSError:
            return  # the node ended as it was called
        self.connection = Connection(f"{self.number}.{self._generation}", now, node)
        self.crowd.connections.append(self.connection)
        self._ids = itertools.count(1)
        self._buffer = b""
        self.leaving = False
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.crowd.selector.register(self._socket, selectors.EVENT_READ, self._read)
        self._write([":hello", 0, {}])

    @property
    def connected(self) -> bool:
        """Whether it has a connection, as far as it knows."""
        return self._socket is not None

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
        self.connection.lost, self.connection.by_us = now, by_us
        calls, self.open = self.open, {}
        self._cancels.clear()
        for call in calls.values():
            call.outcome, call.end = outcome, None if outcome == "open" else now
            if outcome != "open":
                self.ended(call)

    def act(self) -> None:
        """Do something, and plan the next act."""
        raise NotImplementedError

    def ended(self, call: Call) -> None:
        """A call was answered, or lost with its connection."""

    def call(self, kind: str, topic: str, timeout_s: float, group: str | None = None) -> Call | None:
        """Make a call; a send's value is its label. None if the connection is lost."""
        if self._socket is None:
            return None
        id = next(self._ids)
        call = Call(self.connection, id, kind, topic, time.monotonic(), timeout_s)
        frame: list[Any] = [f":{kind}!", id, round(timeout_s * 1000), topic]
        if kind == "send":
            call.value = call.label
            frame.append(call.value)
        elif kind == "take":
            call.group = group
            frame.append(group)
        self.crowd.calls.append(call)
        self.open[id] = call
        self._write(frame)
        return call

    def cancel(self, call: Call) -> None:
        """Ask for the end of a call."""
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
            self.connection.worker = None if error else result["worker"]
        elif id in self._cancels:
            self._cancel_answered(id, result)
        elif id in self.open:
            self._call_answered(self.open.pop(id), result, error, now)
        else:
            self.crowd.complaints.append(f"{self.connection.label}: {method} {id} was answered twice: {result!r}")
        if error == "draining":
            self.leaving = True

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
        self.ended(call)
