"""The other end of a link between two workers, which says what a test has it say: messages are all that it knows."""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Final

import msgpack

from tests.simulation.stage import is_readable
from tests.workers.wire_client import ConnectionEnded, packed
from workers.mesh.messages import (
    BUSY,
    CENSUS,
    COUNTED,
    GIVE,
    LONG,
    LOST,
    MET,
    OFFER,
    REFUSED,
    TOOK,
    WITHDRAWN,
)

ANSWERS: Final = frozenset((GIVE, MET, WITHDRAWN, BUSY, COUNTED, REFUSED, TOOK, LOST, LONG))
"""Kinds that are about what the other end has numbered: its numbers are said as the very bytes that came."""


class LinkEnd:
    """One end, over a socket that blocks or does not. Whoever asks whether it lives is told, unless it is not to."""

    def __init__(self, sock: socket.socket, heard: bytes = b"", *, lives: bool = True) -> None:
        self.socket = sock
        self.said: list[list[Any]] = []
        """All that has come."""
        self._input = bytearray(heard)
        self._lives = lives
        self._next = 0
        self._numbers: dict[Any, bytes] = {}

    def write(self, data: bytes) -> None:
        """Send these very bytes, unless it is closed there."""
        with contextlib.suppress(ConnectionError):
            self.socket.sendall(data)

    def say(self, kind: int, *elements: Any) -> None:
        """Say a message."""
        said = [*map(packed, elements)]
        if kind in ANSWERS and elements:
            said[0] = self._numbers.get(elements[0], said[0])
        body = bytes((0x91 + len(said),)) + packed(kind) + b"".join(said)
        self.write(len(body).to_bytes(4, "big") + body)

    def hear(self) -> list[Any]:
        """Return the next message. Raises ConnectionEnded, or TimeoutError as the socket does."""
        while self._next == len(self.said):
            if not self._take():
                raise ConnectionEnded(bytes(self._input))
        self._next += 1
        return self.said[self._next - 1]

    def look(self) -> list[list[Any]]:
        """Return the messages that are here, of those that were not returned before."""
        while is_readable(self.socket, 0) and self._take():
            pass
        found, self._next = self.said[self._next :], len(self.said)
        return found

    def heard(self, *kinds: int) -> list[list[Any]]:
        """Return all messages of these kinds that have come so far."""
        self.look()
        return [message for message in self.said if message[0] in kinds]

    def is_cut_off(self) -> bool:
        """Read to the end; return whether that comes."""
        with contextlib.suppress(TimeoutError):
            while self._take():
                pass
            return True
        return False

    def _take(self) -> bool:
        """Take in what comes next; return whether anything does before the end."""
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionError:
            data = b""
        self._input += data
        while len(self._input) >= 4 and len(self._input) >= (end := 4 + int.from_bytes(self._input[:4], "big")):
            body = bytes(self._input[4:end])
            del self._input[:end]
            reader, places = msgpack.Unpacker(strict_map_key=False), []
            reader.feed(body)
            message: list[Any] = []
            for _ in range(reader.read_array_header()):
                places.append(reader.tell())
                message.append(reader.unpack())
            places.append(len(body))
            at = 2 if message[0] == OFFER else 1
            if type(message[at]) is int:
                self._numbers[message[at]] = body[places[at] : places[at + 1]]
            if message[0] == CENSUS and self._lives:
                self.say(COUNTED, message[1], b"")
            else:
                self.said.append(message)
        return bool(data)
