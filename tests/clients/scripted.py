"""A node that does what a test tells it, frame by frame: for what no real node can be brought to do on demand."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from typing import Any

import msgpack

from tests.helpers import time_factor

PATIENCE_S = 5.0


def framed(message: Any) -> bytes:
    """Return the frame of a message."""
    body: bytes = msgpack.packb(message)
    return len(body).to_bytes(2, "big") + body


def error(code: str, message: str = "no", details: dict[str, Any] | None = None) -> msgpack.ExtType:
    """Return the result that says that a call is refused."""
    return msgpack.ExtType(0x45, msgpack.packb([code, message, details or {}]))


TIMED_OUT = msgpack.ExtType(0x54, b"\0")


FIRST_QUESTION = framed([":tokens", 1])


class Connection:
    """One connection as the node sees it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._socket.settimeout(PATIENCE_S * time_factor())
        self._stream = sock.makefile("rb")

    def read_bytes(self) -> bytes:
        """Return the body of the next frame; empty at the end of the stream."""
        head = self._stream.read(2)
        return self._stream.read(int.from_bytes(head, "big")) if len(head) == 2 else b""

    def read(self) -> Any:
        """Return the next message; None at the end of the stream."""
        body = self.read_bytes()
        return msgpack.unpackb(body, strict_map_key=False) if body else None

    def answer_first_question(self) -> None:
        """Answer what a client asks to see that there is a node, if that is what it says first."""
        with contextlib.suppress(OSError):
            if self._socket.recv(len(FIRST_QUESTION), socket.MSG_PEEK) == FIRST_QUESTION:
                self.write([":tokens", self.read()[1], [1, 2, 3]])

    def write(self, *messages: Any) -> None:
        """Send messages, in one go."""
        self.write_bytes(b"".join(map(framed, messages)))

    def write_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


class ScriptedNode:
    """Accepts connections, and leaves the rest to the test."""

    def __enter__(self) -> ScriptedNode:
        self._listener = self.listen()
        self._connections: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._all: list[Connection] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for connection in self._all:
            connection.close()

    def listen(self) -> socket.socket:
        """Return what clients connect to."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        return listener

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def next_connection(self) -> Connection:
        """Return the next connection that a client made."""
        return self._connections.get(timeout=PATIENCE_S * time_factor())

    def no_connection_waits(self) -> bool:
        """Whether every connection that was made was also taken."""
        return self._connections.empty()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            connection = Connection(sock)
            self._all.append(connection)
            self._connections.put(connection)
            threading.Thread(target=connection.answer_first_question, daemon=True).start()
