"""A client that knows the framing and nothing else: what goes in and out is what the test says, byte by byte.

It waits for what comes, whether its node is a real one or on the stage. With that of pub/sub, in `pubsub_client`, it is
one of two raw clients that tests have. The other, in tests/simulation/clients.py, has a plan of its own and waits for
nothing: it is a part of what is simulated, and of chaos.
"""

from __future__ import annotations

import itertools
import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import msgpack
import pytest

from skywalker.ring import token_of, worker_of
from tests.helpers import CLOCK, eventually, time_factor
from tests.simulation.stage import is_readable, socket_for

TIMED_OUT = msgpack.ExtType(0x54, b"\0")
ERROR_TYPE = 0x45
RST_ON_CLOSE = struct.pack("ii", 1, 0)

FIRST_ID = 1 << 20
"""Of the ids that a client gives to calls itself, unlike those that a test names."""

Address = tuple[str, int]

SECURE: dict[Address, ssl.SSLContext] = {}
"""Where nothing but TLS is spoken now, and how."""


class ConnectionEnded(ConnectionError):
    """The node closed the connection; `rest` is what came before that was no whole frame."""

    def __init__(self, rest: bytes) -> None:
        super().__init__(f"the node closed the connection, after {rest.hex() or 'nothing'}")
        self.rest = rest


class Refusal(NamedTuple):
    """An error reply taken apart."""

    method: Any
    id: Any
    code: str
    message: str
    details: dict[Any, Any]


class Refused(Exception):
    """A call was answered with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class WireClient:
    """One connection to a node. Times are in seconds on an idle machine, and stretched by the time factor.

    Answers are read in the order in which they come, or by the id of their call; what comes before one that is waited
    for is kept until it is asked for.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._input = bytearray()
        self._kept: list[bytes] = []  # whole frames
        self._together: bytearray | None = None  # what is written at once, later
        self._ids = itertools.count(FIRST_ID)
        self._hello: int | None = None

    @classmethod
    def open(cls, address: Address, *, receive_buffer: int | None = None) -> Self:
        """Connect. A small `receive_buffer` (bytes) makes a peer that soon takes no more."""
        sock = socket_for(address)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(5 * time_factor())
        try:
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return cls(SECURE[address].wrap_socket(sock, server_hostname=address[0]) if address in SECURE else sock)
        except BaseException:
            sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Out.

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self._together is not None:
            self._together += data
            return
        try:
            self.socket.sendall(data)
        except ssl.SSLEOFError as error:
            raise BrokenPipeError from error

    def call(self, *elements: Any) -> None:
        """Send the frame of one call."""
        self.write(call(*elements))

    def begin(self, method: str, *arguments: Any) -> int:
        """Make a call, and return its id."""
        id = next(self._ids)
        self.call(method, id, *arguments)
        return id

    @contextmanager
    def in_one_write(self) -> Iterator[None]:
        """Keep what is said in the block, and write it together."""
        self._together = bytearray()
        yield
        data, self._together = self._together, None
        self.write(bytes(data))

    # In.

    def result(self, call: int, within: float = 10.0) -> Any:
        """Return the result of a call that was begun. Raises Refused, TimeoutError or ConnectionEnded."""
        kept = [number for number, frame in enumerate(self._kept) if decoded(frame)[1] == call]
        if kept:
            frame = self._kept.pop(kept[0])
        else:
            while decoded(frame := self._next_frame(within))[1] != call:
                self._kept.append(frame)
        result = decoded(frame)[2]
        if isinstance(result, msgpack.ExtType) and result.code == ERROR_TYPE:
            raise Refused(*msgpack.unpackb(result.data, strict_map_key=False)[:2])
        return result

    def answer(self, method: str, *arguments: Any, within: float = 10.0) -> Any:
        """Make a call and return its result, whatever comes before it. Raises as result() does."""
        return self.result(self.begin(method, *arguments), within)

    def read_frame(self, within: float = 5.0) -> bytes:
        """Return the next whole frame with its length. Raises TimeoutError or ConnectionEnded."""
        return self._kept.pop(0) if self._kept else self._next_frame(within)

    def _next_frame(self, within: float) -> bytes:
        deadline = CLOCK.monotonic() + within * time_factor()
        while (frame := self._cut()) is None:
            self.socket.settimeout(max(0.000_001, deadline - CLOCK.monotonic()))
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                raise ConnectionEnded(bytes(self._input))
            self._input += data
        return frame

    def rest(self) -> bytearray:
        """Return what came behind the last frame that was read, and keep it no more."""
        rest, self._input = self._input, bytearray()
        return rest

    def reply(self, within: float = 5.0) -> list[Any]:
        """Return the elements of the next frame."""
        return decoded(self.read_frame(within))

    def replies(self, count: int, within: float = 5.0) -> list[list[Any]]:
        """Return the next `count` replies in the order they came."""
        return [self.reply(within) for _ in range(count)]

    def ask(self, *elements: Any, within: float = 5.0) -> Any:
        """Make a call that is answered next, and return its result."""
        self.call(*elements)
        method, id, result = self.reply(within)
        assert (method, id) == (elements[0], elements[1])
        return result

    def refusal(self, within: float = 5.0) -> Refusal:
        """Return the next reply, which must be an error."""
        return refusal(self.reply(within))

    def has_input(self, within: float = 0.0) -> bool:
        """Tell whether something, or an end, can be read now or comes in time."""
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return True
        return bool(self._kept or self._input) or is_readable(self.socket, within)

    def wait_for_end(self, within: float = 5.0) -> None:
        """Return once the node has closed, having said nothing more."""
        with pytest.raises(ConnectionEnded) as end:
            self.read_frame(within)
        assert end.value.rest == b""

    # What nearly every test asks.

    def greet(self) -> Self:
        """Say :hello, and hear of errors from then on; return this."""
        self.ask(":hello", "hello", {})
        return self

    def say_hello(self) -> Self:
        """Say :hello, as programs do that hear of errors, and leave the answer for later; return this."""
        self._hello = self.begin(":hello", {})
        return self

    @property
    def greeting(self) -> dict[str, Any]:
        """What the worker has answered to say_hello(), of itself and of its node."""
        if self._hello is not None:
            self._greeting: dict[str, Any] = self.result(self._hello)
            self._hello = None
        return self._greeting

    def worker(self) -> int:
        """Return the number of the worker that has this connection."""
        number: int = self.answer(":hello", {})["worker"]
        return number

    def info(self, topic: Any) -> dict[str, Any]:
        """Return who waits on a topic."""
        counted: dict[str, Any] = self.answer(":topic", topic)
        return counted

    def topic_owned_by(self, slot: int) -> str:
        """Return a topic, new at every call of the test run, that the worker in `slot` owns, of one that said hello."""
        workers = self.greeting["workers"]
        run = random.getrandbits(64)
        return next(
            topic
            for number in itertools.count()
            if worker_of(token_of(packed(topic := f"{run}-{number}")), workers) == slot
        )

    def wait_until(self, topic: Any, within: float = 5.0, **wanted: Any) -> None:
        """Return once as many wait on the topic as `wanted` says: receivers=2, senders=0."""
        eventually(lambda: wanted.items() <= self.info(topic).items(), within)

    # The end.

    def reset(self) -> None:
        """Go without a word: the node gets an RST, as from a machine that crashed and came back."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.socket.close()

    def close(self) -> None:
        """Close in the usual way."""
        self.socket.close()

    def _cut(self) -> bytes | None:
        if len(self._input) < 2:
            return None
        end = 2 + int.from_bytes(self._input[:2], "big")
        if len(self._input) < end:
            return None
        frame = bytes(self._input[:end])
        del self._input[:end]
        return frame


def packed(value: Any) -> bytes:
    """Return a value's MessagePack bytes."""
    data: bytes = msgpack.packb(value)
    return data


def framed(body: bytes) -> bytes:
    """Return a frame with this body."""
    return len(body).to_bytes(2, "big") + body


def call(*elements: Any) -> bytes:
    """Return the frame of one call."""
    return framed(packed(elements))


def raw_call(*elements: bytes) -> bytes:
    """Return the frame of one call whose elements are encoded already."""
    return framed(bytes((0x90 | len(elements),)) + b"".join(elements))


def decoded(frame: bytes) -> list[Any]:
    """Return what a frame's array holds."""
    elements: list[Any] = msgpack.unpackb(frame[2:], strict_map_key=False)
    return elements


def refusal(reply: list[Any]) -> Refusal:
    """Take an error reply apart. Raises AssertionError if it is none."""
    method, id, result = reply
    assert isinstance(result, msgpack.ExtType), f"no error but {result!r}"
    assert result.code == ERROR_TYPE, f"no error but {result!r}"
    return Refusal(method, id, *msgpack.unpackb(result.data, strict_map_key=False))


def code_of(call: Callable[..., object], *arguments: object) -> str:
    """Return the code of the error that `call(*arguments)` is refused with; AssertionError if it is not."""
    try:
        result = call(*arguments)
    except Refused as refused:
        return refused.code
    raise AssertionError(f"not refused, but answered {result!r}")


class Clients:
    """Connections to one node that are closed together."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._open: list[WireClient] = []

    def __call__(self, *, worker: int | None = None, receive_buffer: int | None = None) -> WireClient:
        """Return a new connection, to the given worker if one is named."""
        for _ in range(500):
            client = WireClient.open(self.address, receive_buffer=receive_buffer)
            self._open.append(client)
            if worker is None or client.worker() == worker:
                return client
            self._open.pop().close()
        raise AssertionError(f"500 connections, none of them to worker {worker}")

    def close(self) -> None:
        """Close them all."""
        for client in self._open:
            client.close()


@contextmanager
def clients_of(address: Address) -> Iterator[Clients]:
    """Yield a maker of connections, and close them at the end."""
    clients = Clients(address)
    try:
        yield clients
    finally:
        clients.close()
