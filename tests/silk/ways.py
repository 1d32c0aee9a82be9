"""A way between nodes, on which bytes are copied."""

from __future__ import annotations

import contextlib
import socket
import threading


class Wiretap:
    """Passes bytes between those who connect and an endpoint, keeps a copy, and may cut all connections."""

    def __init__(self, endpoint: str, at: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(at)
        self._socks: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.heard = bytearray()
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Wiretap:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join()
        for sock in [self._listener, *self._socks]:
            sock.close()

    def cut(self) -> None:
        """Cut all connections that there are; others can be made."""
        for sock in [*self._socks]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _start(self, target: object, *args: socket.socket) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]  # any callable
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._socks += [near, far]
                self._start(self._pass_on, near, far)
                self._start(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.heard += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
