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


def decoded(body: bytes) -> Any:
    """Return the message in the body of a frame, None if it is none."""
    try:
        return msgpack.unpackb(body, strict_map_key=False)
    except ValueError:
        return None


def error(code: str, message: str = "no", details: dict[str, Any] | None = None) -> msgpack.ExtType:
    """Return the result that says that a call is refused."""
    return msgpack.ExtType(0x45, msgpack.packb([code, message, details or {}]))


TIMED_OUT = msgpack.ExtType(0x54, b"\0")


GREETING = {"ring": True}
"""What a client says with :hello that has nothing to say."""

FIRST_QUESTION = [":tokens", 2]


class Connection:
    """One connection as the node sees it: with `courtesies`, an original one that answers a bare :hello with nil."""

    def __init__(self, sock: socket.socket, courtesies: bool = True) -> None:
        self._socket = sock
        self._socket.settimeout(PATIENCE_S * time_factor())
        self._courtesies = courtesies
        self._reading = threading.Lock()
        self._unread = b""

    def read_bytes(self) -> bytes:
        """Return the body of the next frame; empty at the end of the stream."""
        with self._reading:
            while self._take_next() and self._is_greeting():
                self._be_courteous()
            return self._consume()

    def read(self) -> Any:
        """Return the next message; None at the end of the stream."""
        body = self.read_bytes()
        return decoded(body) if body else None

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes, less at the end of the stream."""
        with self._reading:
            while len(self._unread) < count and (data := self._socket.recv(1 << 16)):
                self._unread += data
            taken, self._unread = self._unread[:count], self._unread[count:]
            return taken

    def answer_first_questions(self) -> None:
        """Answer what a client says and asks to see that there is a node, as far as it says that first."""
        was_greeted = False  # here: if the test has read that, what comes behind it is the test's, too
        with contextlib.suppress(OSError), self._reading:
            while self._take_next() and (
                self._is_greeting() or (was_greeted and decoded(self._body()) == FIRST_QUESTION)
            ):
                was_greeted = True
                self._be_courteous()

    def _take_next(self) -> bool:
        """Have the next frame be here; return whether there is one."""
        while len(self._unread) < 2 or len(self._unread) < 2 + self._size():
            data = self._socket.recv(1 << 16)
            if not data:
                return False
            self._unread += data
        return True

    def _size(self) -> int:
        return int.from_bytes(self._unread[:2], "big")

    def _body(self) -> bytes:
        return self._unread[2 : 2 + self._size()]

    def _consume(self) -> bytes:
        body, self._unread = self._body(), self._unread[2 + self._size() :]
        return body

    def _is_greeting(self) -> bool:
        match decoded(self._body()):
            case [":hello", _, options]:
                return self._courtesies and options == GREETING
        return False

    def _be_courteous(self) -> None:
        method, id = decoded(self._consume())[:2]
        self.write([method, id, [1, 2, 3] if method == ":tokens" else None])

    def write(self, *messages: Any) -> None:
        """Send messages, in one go."""
        self.write_bytes(b"".join(map(framed, messages)))

    def write_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # which also ends a thread that reads
        self._socket.close()


class ScriptedNode:
    """Accepts connections, and leaves the rest to the test, but for `courtesies` unless these are not wanted."""

    def __init__(self, courtesies: bool = True) -> None:
        self._courtesies = courtesies

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
            connection = Connection(sock, self._courtesies)
            self._all.append(connection)
            self._connections.put(connection)
            if self._courtesies:
                threading.Thread(target=connection.answer_first_questions, daemon=True).start()
