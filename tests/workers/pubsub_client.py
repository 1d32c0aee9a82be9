"""A client of the pub/sub dialect that knows its bytes and nothing else: what goes in and out is what the test says."""

from __future__ import annotations

import random
import socket
import struct
from collections import deque
from typing import Final, NamedTuple, Self

from skywalker.dialling import source_port
from tests.helpers import CLOCK, time_factor
from tests.simulation.stage import is_readable, socket_for
from tests.workers.wire_client import RST_ON_CLOSE, SECURE, Address, ConnectionEnded

ACK: Final = b"\x04"


class Message(NamedTuple):
    """What a subscriber gets; `form` is hint and flags, empty where it came as a plain publish."""

    topic: bytes
    payload: bytes
    form: bytes = b""


def publish(topic: bytes, payload: bytes) -> bytes:
    """Return a publish."""
    return b"\x01" + bytes((len(topic),)) + topic + struct.pack("<H", len(payload)) + payload


def publish_typed(topic: bytes, hint: int, flags: int, payload: bytes) -> bytes:
    """Return a publish-typed; the payload is as the flags say."""
    return b"\x06" + bytes((len(topic),)) + topic + bytes((hint, flags)) + struct.pack("<H", len(payload)) + payload


def subscribe(topic: bytes, *, typed: bool = False) -> bytes:
    """Return a subscribe."""
    return (b"\x05" if typed else b"\x02") + bytes((len(topic),)) + topic


def unsubscribe(topic: bytes) -> bytes:
    """Return an unsubscribe."""
    return b"\x03" + bytes((len(topic),)) + topic


class PubSubClient:
    """One connection to a pub/sub door. Times are in seconds on an idle machine, and stretched by the time factor."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.ended = False  # the node has closed it, as far as arrived() knows
        self._input = bytearray()
        self._messages: deque[Message] = deque()  # that came before an ack that was waited for
        self._acks = 0  # that came before a message that was waited for

    @classmethod
    def open(cls, address: Address, *, steer: tuple[int, int] | None = None, receive_buffer: int | None = None) -> Self:
        """Connect, to a worker of so many if that is named. A small `receive_buffer` (bytes) soon takes no more."""
        sock = socket_for(address)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            if steer is not None:
                # Ports of connections that are over stay taken for a while, but only for their own address.
                source = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(1, 255)}"
                sock.bind((source, source_port(*steer, random.random())))
            sock.settimeout(5 * time_factor())
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
        self.socket.settimeout(5 * time_factor())
        self.socket.sendall(data)

    def publish(self, topic: bytes, payload: bytes, within: float = 5.0) -> None:
        """Publish, and wait for the ack."""
        self.write(publish(topic, payload))
        self.acks(1, within)

    def subscribe(self, *topics: bytes, typed: bool = False) -> None:
        """Subscribe to topics, and wait for the acks."""
        self.write(b"".join(subscribe(topic, typed=typed) for topic in topics))
        self.acks(len(topics))

    def unsubscribe(self, *topics: bytes) -> None:
        """Unsubscribe, and wait for the acks."""
        self.write(b"".join(map(unsubscribe, topics)))
        self.acks(len(topics))

    # In.

    def read(self, size: int, within: float = 5.0) -> bytes:
        """Return the next bytes, exactly so many, whatever they mean. Raises TimeoutError or ConnectionEnded."""
        deadline = CLOCK.monotonic() + within * time_factor()
        while len(self._input) < size:
            self._receive(deadline)
        data = bytes(self._input[:size])
        del self._input[:size]
        return data

    def acks(self, count: int, within: float = 5.0) -> None:
        """Wait for so many acks; messages that come before them are kept."""
        deadline = CLOCK.monotonic() + within * time_factor()
        while self._acks < count:
            self._sort(deadline)
        self._acks -= count

    def message(self, within: float = 5.0) -> Message:
        """Return the next message; acks that come before it are counted."""
        deadline = CLOCK.monotonic() + within * time_factor()
        while not self._messages:
            self._sort(deadline)
        return self._messages.popleft()

    def next(self, within: float = 5.0) -> Message | None:
        """Return the next message, or None for an ack that comes before it; for who has waited for neither yet."""
        return self._next(CLOCK.monotonic() + within * time_factor())

    def messages(self, count: int, within: float = 5.0) -> list[Message]:
        """Return the next so many."""
        return [self.message(within) for _ in range(count)]

    def arrived(self) -> list[Message]:
        """Return the messages that are here, without waiting; `ended` tells whether more can come."""
        while not self.ended and is_readable(self.socket, 0):
            try:
                self._receive(CLOCK.monotonic())
            except ConnectionEnded:
                self.ended = True
        while self._size() is not None:
            self._sort(0.0)
        found = [*self._messages]
        self._messages.clear()
        return found

    def has_input(self, within: float = 0.0) -> bool:
        """Tell whether something, also an ack nobody waited for, or an end, can be read now or comes in time."""
        return bool(self._messages or self._acks or self._input) or is_readable(self.socket, within)

    def until_end(self, within: float = 5.0) -> tuple[int, list[Message], bytes]:
        """Read until the node closes: return how many acks came, the messages, and the rest that is none."""
        deadline = CLOCK.monotonic() + within * time_factor()
        rest: bytes | None = None
        while rest is None:
            try:
                self._sort(deadline)
            except ConnectionEnded as end:
                rest = end.rest
        acks, self._acks = self._acks, 0
        found = [*self._messages]
        self._messages.clear()
        return acks, found, rest

    def wait_for_end(self, within: float = 5.0) -> None:
        """Return once the node has closed, having said nothing more."""
        assert self.until_end(within) == (0, [], b"")

    def _sort(self, deadline: float) -> None:
        """Take in one message."""
        item = self._next(deadline)
        if item is None:
            self._acks += 1
        else:
            self._messages.append(item)

    def _receive(self, deadline: float) -> None:
        self.socket.settimeout(max(0.000_001, deadline - CLOCK.monotonic()))
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        if not data:
            raise ConnectionEnded(bytes(self._input))
        self._input += data

    def _next(self, deadline: float) -> Message | None:
        """Return the next message, None for an ack."""
        while (size := self._size()) is None:
            self._receive(deadline)
        whole = bytes(self._input[:size])
        del self._input[:size]
        if whole == ACK:
            return None
        topic = 2 + whole[1]
        form = topic + (2 if whole[0] == 6 else 0)
        return Message(whole[2:topic], whole[form + 2 :], whole[topic:form])

    def _size(self) -> int | None:
        """Return how long the message is that comes next, None while too little of it is there."""
        data = self._input
        if not data:
            return None
        if data[0] == ACK[0]:
            return 1
        assert data[0] in (1, 6), f"the node said {bytes(data[:20])!r}"
        if len(data) < 2:
            return None
        start = 2 + data[1] + (2 if data[0] == 6 else 0)
        if len(data) < start + 2:
            return None
        end = start + 2 + data[start] + 256 * data[start + 1]
        return end if len(data) >= end else None

    # The end.

    def end_own_half(self) -> None:
        """Say that nothing more will be sent, and go on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Go without a word, as a machine that crashed and came back."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.socket.close()

    def close(self) -> None:
        """Close in the usual way."""
        self.socket.close()
