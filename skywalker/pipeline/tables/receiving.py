"""Many calls in flight over one connection to any node: values come in as bytes, as fast as Python can cut frames.

The node says who owns a topic and forwards what it does not own, also when that changes. A value
is acknowledged only when its receiver says that it is safe; with a connection that ends before,
the node gives it to somebody else. So a connection may be closed at any time.

A send! goes to every recv! that waits. So of a topic's recv!s only one waits, and the others ask
"is anyone there now?". Of takers in a group each value has one, and all of them may wait.
"""

from __future__ import annotations

import contextlib
import dataclasses
import select
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Self

from skywalker.address import Address
from skywalker.clients.blocking import connection
from skywalker.clients.blocking.connection import Connection, wait_for
from skywalker.clients.blocking.dialer import DIAL_STEP_S
from skywalker.clients.settings import CONNECT_TIMEOUT_S
from skywalker.clients.stream import PROBE_S, Silence
from skywalker.dialling import cause_of
from skywalker.errors import Busy, RemoteProtocolError, RequestError, Unauthorized, Unreachable
from skywalker.limits import KIB
from skywalker.pipeline.tables.finding import Finder
from skywalker.pipeline.tables.reading import Reading
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, Frame, split
from skywalker.wire.junction import frame


@dataclasses.dataclass(slots=True)
class Chunk:
    """Values in the order they came, each with the id of its call; a subscription's all have its one."""

    ids: list[bytes]
    values: list[bytes]
    connection: int  # which of those that were made, one after another

    def __len__(self) -> int:
        return len(self.values)

    def split(self, at: int) -> tuple[Chunk, Chunk]:
        """Return the first so many, and the others."""
        return (
            Chunk(self.ids[:at], self.values[:at], self.connection),
            Chunk(self.ids[at:], self.values[at:], self.connection),
        )


CALL_MS: Final = 60_000
"""Milliseconds that a call waits before it is made again."""


@dataclasses.dataclass(slots=True)
class Slot:
    """A call that is made over and over under one id, which costs no encoding."""

    topic: int
    waits: bool  # rather than to ask who is there now
    call: bytes
    ack: bytes  # says that what came for it is safe
    again: bytes  # both: first the one, then the next call


def slots_of(reading: Reading, depth: int) -> dict[bytes, Slot]:
    """Return by id the calls to make: of each topic so many, or one subscription."""
    slots: dict[bytes, Slot] = {}
    if reading.method == "subscribe":
        depth = 1
    for index, name in enumerate(reading.topics):
        topic = values.pack(name)
        for turn in range(depth):
            id = values.pack(len(slots))
            waits = turn == 0 or reading.method == "take"
            timeout = values.pack(CALL_MS if waits else 0)
            if reading.method == "subscribe":
                call = frame(wire.SUBSCRIBE, id, topic)
            elif reading.method == "take":
                call = frame(wire.TAKE, id, timeout, topic, values.pack(reading.group))
            else:
                call = frame(wire.RECV, id, timeout, topic)
            ack = frame(wire.ACK, id)
            slots[id] = Slot(index, waits, call, ack, ack + call)
    return slots


DEPTH: Final = 2048
"""Calls in flight: many frames in one read, and far from what a node allows a connection (10,000)."""

READ_BYTES: Final = 256 * KIB
"""What a node gives a connection at most before something is acknowledged."""

MUCH: Final = connection.READ_BYTES // 2
"""Bytes that come at once where there are probably more. By TLS, up to a record of what was read is kept back."""

WRITE_S: Final = 2 * PROBE_S
"""Seconds in which a node has to take what is written to it."""

_NODES_ID: Final = values.pack("nodes")
_PING: Final = frame(wire.PING, values.pack("ping"))
_PONG: Final = frame(wire.PING, wire.NIL, wire.TRUE)


@dataclasses.dataclass(slots=True)
class Counts:
    """What has happened so far."""

    waits: int = 0  # times that there was nothing to take
    timeouts: int = 0  # calls whose time was over with nobody there
    connections: int = 0  # that were made


class Receiver:
    """Receives from topics, for one thread. Use it in a `with` statement; it connects as it enters."""

    def __init__(self, reading: Reading, rows: int = DEPTH, *, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Receive about `rows` at a time at most. `cancelled` says whether to stop dialling."""
        self.counts = Counts()
        self.topics = reading.topics
        self._reading = reading
        self._finder = Finder(reading.settings(), needs_ack=True)
        self._silence = Silence()
        self._cancelled = cancelled
        self._slots = slots_of(reading, max(1, min(rows, DEPTH) // len(reading.topics)))
        self._idle: list[list[bytes]] = []  # by topic, the slots that ask who is there, and are not under way
        self._busy = 0  # calls that the node refused for being too many
        self._connection: Connection | None = None
        self._out: list[bytes] = []  # to be written once all that came is taken
        self._tail = b""
        self._spare = Chunk([], [], 0)  # received, and not yet wanted

    def __enter__(self) -> Self:
        try:
            self._begin(self._finder.find(CONNECT_TIMEOUT_S))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave. What is not acknowledged goes to somebody else."""
        self._finder.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._connection is not None

    @property
    def cause(self) -> str:
        """Why the last connection was lost, or could not be made."""
        return self._finder.cause

    def unreachable(self) -> Unreachable | Unauthorized:
        """Return the error that says that there is no connection."""
        return self._finder.unreachable()

    def grouped(self, chunk: Chunk) -> dict[str, list[bytes]]:
        """Return the values of a chunk by topic."""
        if len(self.topics) == 1:
            return {self.topics[0]: chunk.values}
        groups: dict[str, list[bytes]] = {}
        for id, value in zip(chunk.ids, chunk.values, strict=True):
            groups.setdefault(self.topics[self._slots[id].topic], []).append(value)
        return groups

    def receive(self, wait_s: float, most: int) -> Chunk:
        """Return up to `most` values, waiting at most `wait_s` seconds for the first; an empty chunk if none comes.

        A lost connection is made again meanwhile. Raises RequestError for what the node refuses, such as a topic
        that is too long for it.
        """
        deadline = time.monotonic() + wait_s
        if not self._spare.values:
            self._fill(0.0)
            if not self._spare.values:
                self.counts.waits += 1
        while not self._spare.values and (left := deadline - time.monotonic()) > 0 and not self._cancelled():
            self._fill(left)
        chunk, self._spare = self._spare.split(most)
        return chunk

    def put_back(self, chunk: Chunk) -> None:
        """Have what was received last come again with the next receive(), instead of acknowledging it."""
        if chunk.connection == self._spare.connection:
            self._spare = Chunk(chunk.ids + self._spare.ids, chunk.values + self._spare.values, chunk.connection)

    def acknowledge(self, chunk: Chunk, *, and_go_on: bool = True) -> None:
        """Say that these values are safe, and ask for as many more."""
        if not chunk or self._reading.method == "subscribe" or chunk.connection != self.counts.connections:
            return  # nobody waits for a word, or its node will never hear it and gives the values again
        slots = self._slots
        if not and_go_on:
            self._write(b"".join([slots[id].ack for id in chunk.ids]))
            return
        out = [slots[id].again for id in chunk.ids]
        if self._reading.method == "recv":
            for id in chunk.ids:
                out += self._ask_more(slots[id])
        self._write(b"".join(out))

    def _ask_more(self, slot: Slot) -> Iterable[bytes]:
        """Return calls that ask whether still more is there, since something was: one, then twice as many each time."""
        idle = self._idle[slot.topic]
        asked, idle[:] = idle[: 1 if slot.waits else 2], idle[1 if slot.waits else 2 :]
        return [self._slots[id].call for id in asked]

    # The connection.

    def _begin(self, found: Connection) -> None:
        """Make all calls over a new connection."""
        self._connection = found
        self._tail = b""
        self._silence.broken(time.monotonic())
        self.counts.connections += 1
        self._spare.connection = self.counts.connections
        self._idle = [[] for _ in self.topics]
        calls = [frame(wire.NODES, _NODES_ID)]
        for id, slot in self._slots.items():
            if slot.waits:
                calls.append(slot.call)
            else:
                self._idle[slot.topic].append(id)
        self._write(b"".join(calls))
        if self._finder.rest:
            self._take(self._finder.rest)

    def _lose(self, cause: str) -> None:
        """Close the connection; the next receive() makes another, if it can elsewhere."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._out.clear()
            if self._reading.method != "subscribe":
                self._spare = Chunk([], [], 0)  # which is given again
            self._finder.lost(cause)

    def _write(self, data: bytes) -> None:
        found = self._connection
        if found is None:
            return
        found.write(data)
        while found.unsent:
            if not wait_for(found.fd, select.POLLOUT, WRITE_S):
                self._lose(cause_of(TimeoutError()))
                return
            found.write(b"")

    def _fill(self, wait_s: float) -> None:
        """Take what comes within so many seconds, though perhaps less: a few rounds are no harm."""
        if self._connection is None:
            found = self._finder.advance(time.monotonic() + min(wait_s, DIAL_STEP_S))
            if found is not None:
                self._begin(found)
            return
        try:
            data = _read(self._connection, min(wait_s, DIAL_STEP_S))
        except OSError as error:
            self._lose(cause_of(error))
            return
        if data is None:
            self._listen_on()
            return
        self._silence.broken(time.monotonic())
        self._finder.works()
        self._take(data)

    def _listen_on(self) -> None:
        """Nothing came: ask the node whether it lives, or give it up."""
        now = time.monotonic()
        if self._silence.wait(now) > 0:
            return
        if self._silence.means_death:
            self._lose(f"the node has been silent for {2 * PROBE_S:g} s, even to a ping")
        else:
            self._silence.pinged(now)
            self._write(_PING)

    # What comes.

    def _take(self, data: bytes) -> None:
        frames, self._tail = split(self._tail + data if self._tail else data)
        given = _GIVEN[self._reading.method]
        ids, found = self._spare.ids, self._spare.values
        for each in frames:
            if len(each) == 3 and each[0] == given and not wire.is_reserved(each[2]):
                ids.append(each[1])
                found.append(each[2])
            else:
                self._unusual(each)
        if self._out:
            out, self._out = self._out, []
            self._write(b"".join(out))

    def _unusual(self, message: Frame) -> None:
        """Deal with what is not plainly a value."""
        if isinstance(message, BadFrame):
            raise RemoteProtocolError(f"the node sent something that is not an array: {message.reason}")
        if len(message) == 2 and message[0] == wire.PING:
            self._out.append(_PONG)
            return
        if len(message) != 3:
            raise RemoteProtocolError(f"the node sent an array of {len(message)}, which is not a reply")
        method, id, packed = message
        slot = self._slots.get(id)
        result = values.unpack(packed) if slot is None or wire.is_reserved(packed) else None
        error = wire.refusal(result)
        if error is not None:
            self._refused(id, slot, error)
        elif slot is None:
            self._told(method, id, result)
        elif method != _GIVEN[self._reading.method]:
            pass  # it is a subscription, which has begun
        elif wire.is_timeout(result):
            self._timed_out(id, slot)
        else:
            self._spare.ids.append(id)
            self._spare.values.append(packed)

    def _timed_out(self, id: bytes, slot: Slot) -> None:
        if slot.waits:
            self.counts.timeouts += 1
            self._out.append(slot.call)
        else:
            self._idle[slot.topic].append(id)

    def _refused(self, id: bytes, slot: Slot | None, error: RequestError) -> None:
        if error.retryable or id == wire.NIL:
            self._lose(str(error))
        elif isinstance(error, Busy) and slot is not None and self._busy < len(self._slots) - len(self.topics):
            self._busy += 1  # with fewer calls in flight it goes on
        else:
            raise error

    def _told(self, method: bytes, id: bytes, result: Any) -> None:
        """The node says something of itself."""
        match result:
            case {"leaving": True} if method == wire.RING:
                self._lose("the node drains")
            case {"nodes": [_, _, *_] as nodes} if id == _NODES_ID:
                self._finder.learn(Address(str(node["address"]), int(node["port"])) for node in nodes)


def _read(found: Connection, wait_s: float) -> bytes | None:
    """Return what comes within so many seconds, READ_BYTES of it if there is so much, None if nothing does.

    Raises OSError.
    """
    data = found.read(wait_s)
    if data is None or len(data) < MUCH:
        return data
    parts, size = [data], len(data)
    with contextlib.suppress(OSError):  # which the next read meets, too
        while size < READ_BYTES and (more := found.read(0.0)):
            parts.append(more)
            size += len(more)
    return b"".join(parts)


_GIVEN: Final = {"recv": wire.RECV, "take": wire.TAKE, "subscribe": wire.MESSAGE}
"""The method of a frame that brings a value."""
