"""The core by itself: accepts, and serves calls on local topics. What is rare it refuses by closing."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from array import array
from collections.abc import Iterator
from typing import Any, Final

from bench.servers.peer import HOST, Running, free_port, process
from skywalker.limits import MAX_FRAME, Limits
from skywalker.wire import junction as wire
from skywalker.wire.frames import BadFrame, split
from workers.core._core import Moment
from workers.engine.loop import LAYOUT, READ
from workers.stats import metrics

ACCEPTS: Final = 64


class Server:
    """Its rare side."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server((HOST, port), backlog=1024)
        self._listener.setblocking(False)
        self.cells = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS)))
        self.core = Moment(self, Limits(), self.cells, LAYOUT, os.urandom(16)).core
        self.core.watch(self._listener.fileno(), self, READ)

    def ready(self, events: int) -> None:
        """Accept those who wait."""
        for _ in range(ACCEPTS):
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.core.connect(sock.detach())

    def unusual(self, connection: int, body: bytes) -> None:
        """Greet who says :hello, with nothing; close one that asks for more than the core has."""
        (frame,), _ = split(len(body).to_bytes(2, "big") + body)
        if isinstance(frame, BadFrame) or frame[0] != wire.HELLO:
            self.core.close(connection)
            return
        self.core.greeted(connection, False, MAX_FRAME)
        self.core.push(connection, wire.reply(wire.HELLO, frame[1], wire.NIL))

    def failed(
        self, connection: int, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int
    ) -> None:
        """Close one of which a call fails."""
        self.core.close(connection)

    def _never(self, *args: Any, **names: Any) -> Any:
        raise AssertionError("nobody is vetted here, speaks TLS, or is recorded")

    vet = begun = is_through = receive = transmit = shut = named = recorded = _never

    def half_is_old(self, connection: int) -> None:
        """Close it."""
        self.core.close(connection)

    def closed(self, connection: int, why: int, error: int) -> None:
        """Nothing is kept of it."""

    def sampled(self, topic: bytes) -> int:
        """Return how many calls go by until the next is told."""
        return 1000


@contextlib.contextmanager
def started() -> Iterator[Running]:
    """Run one. Raises BenchError."""
    port = free_port()
    with process([sys.executable, "-m", "bench.servers.core", str(port)], port) as pid:
        yield Running(HOST, port, pid, "the core by itself")


def main() -> None:
    """Serve until the process is ended."""
    core = Server(int(sys.argv[1])).core
    while True:
        core.turn()


if __name__ == "__main__":
    main()
