"""Ways between nodes, on which bytes are copied and connections cut, or messages lost."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable

import zmq

from tests.silk.raw_peer import Fields


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


class LossyWay:
    """Passes messages on from one router endpoint to another, but for those that `loses` says are lost."""

    def __init__(self, at: str, to: str, loses: Callable[[Fields], bool]) -> None:
        self._ends = at, to
        self._loses = loses
        self._is_over = False
        self._is_there = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self.lost: list[Fields] = []

    def __enter__(self) -> LossyWay:
        self._thread.start()
        assert self._is_there.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def _pass_on(self) -> None:
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
            dealer.linger = 0
            router.bind(self._ends[0])
            dealer.connect(self._ends[1])
            self._is_there.set()
            while not self._is_over:
                if router.poll(10):
                    _, frame = router.recv_multipart()
                    message = json.loads(frame)
                    if self._loses(message):
                        self.lost.append(message)
                    else:
                        dealer.send(frame)
