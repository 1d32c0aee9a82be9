"""The other end of a connection, in the test's own thread: whoever it waits for has its turns meanwhile."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Final

import msgpack

from skywalker.tls.records import Records
from tests.helpers import time_factor
from tests.workers.wire_client import RST_ON_CLOSE, packed
from workers.mesh.messages import CENSUS, COUNTED

WITHIN_S: Final = 5.0


class FarEnd:
    """One connection, by TLS if there is a context for it; `turn` has the other end work."""

    def __init__(
        self, sock: socket.socket, turn: Callable[[], None], context: ssl.SSLContext | None, **way: Any
    ) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._turn = turn
        self.records = None if context is None else Records(context, **way)
        self._input = b""

    def shake_hands(self) -> None:
        """Do so, where it is by TLS. Raises ssl.SSLError if it fails, which the other end is told."""
        records = self.records
        while records is not None and not records.established:
            try:
                records.shake_hands()
            finally:
                self.write(records.output())
            if not records.established:
                records.feed(self._read())
            else:
                self._input = records.read()  # what came with the last word of the handshake

    def write(self, data: bytes) -> None:
        """Send these very bytes, unless it is closed there."""
        while data:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                pass
            except ConnectionError:
                return
            self._turn()

    def say(self, data: bytes) -> None:
        """Send this, in records where it is by TLS."""
        if self.records is not None:
            self.records.write(data)
            data = self.records.output()
        self.write(data)

    def tell(self, *elements: Any) -> None:
        """Say a message as nodes do."""
        body = packed(elements)
        self.say(len(body).to_bytes(4, "big") + body)

    def hear(self, size: int) -> bytes:
        """Return the next so many bytes."""
        while len(self._input) < size:
            data = self._read()
            if self.records is not None:
                self.records.feed(data)
                data = self.records.read()
            self._input += data
        heard, self._input = self._input[:size], self._input[size:]
        return heard

    def reply(self) -> Any:
        """Return the next frame."""
        return self._next(2)

    def told(self) -> Any:
        """Return the next message of a node, but for the question whether we live, which is answered."""
        while (message := self._next(4))[0] == CENSUS and message[2] is None:
            self.tell(COUNTED, message[1], b"")
        return message

    def _next(self, length_bytes: int) -> Any:
        size = int.from_bytes(self.hear(length_bytes), "big")
        return msgpack.unpackb(self.hear(size), strict_map_key=False)

    def _read(self) -> bytes:
        deadline = time.monotonic() + WITHIN_S * time_factor()
        while time.monotonic() < deadline:
            self._turn()
            with contextlib.suppress(BlockingIOError):
                data = self._socket.recv(65536)
                if not data:
                    raise EOFError
                return data
        raise TimeoutError("nothing came in time")

    def close(self) -> None:
        """Close it, without a word."""
        self._socket.close()

    def reset(self) -> None:
        """Break it."""
        with contextlib.suppress(OSError):  # it is closed
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self._socket.close()
