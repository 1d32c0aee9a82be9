"""A TCP proxy that treats connections as badly as a network can: it cuts, stalls, refuses, listens and forges."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Pair:
    near: socket.socket
    far: socket.socket
    gone: threading.Event = field(default_factory=threading.Event)

    def cut(self) -> None:
        self.gone.set()
        for sock in (self.near, self.far):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Passes bytes between clients and the node at `host` and `port`, for as long as a `with` block.

    `change` makes of each piece that the node says what clients hear.
    """

    def __init__(self, host: str, port: int, change: Callable[[bytes], bytes] = bytes) -> None:
        self._target = (host, port)
        self._pairs: list[_Pair] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener: socket.socket | None = None
        self.port = 0
        self._threads: list[threading.Thread] = []
        self.accepted = 0
        self.heard = bytearray()
        """All that was said, by either side."""
        self._change = change

    def __enter__(self) -> Proxy:
        self.accept()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.flow()
        self.refuse()
        self.cut()
        for thread in self._threads:
            thread.join()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def accept(self) -> None:
        """Let connections be made, at the port of the first time."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._spawn(self._accept_all, self._listener)

    def refuse(self) -> None:
        """Refuse new connections; those that there are go on."""
        if self._listener is not None:
            listener, self._listener = self._listener, None
            listener.shutdown(socket.SHUT_RDWR)
            # Only then is the port free for the next listener, and closed to connections.
            listener.close()

    def cut(self) -> None:
        """Cut every connection."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.cut()

    def stall(self) -> None:
        """Pass nothing on from now on, without a word to anybody."""
        self._flowing.clear()

    def flow(self) -> None:
        """End the stall."""
        self._flowing.set()

    def _accept_all(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = _Pair(near, far)
            self._pairs.append(pair)
            self.accepted += 1  # only now can it be cut
            self._spawn(self._pump, pair)

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]  # any callable
        self._threads.append(thread)
        thread.start()

    def _pump(self, pair: _Pair) -> None:
        other = threading.Thread(target=self._pass_on, args=(pair, pair.far, pair.near), daemon=True)
        other.start()
        self._pass_on(pair, pair.near, pair.far)
        other.join()
        pair.near.close()
        pair.far.close()

    def _pass_on(self, pair: _Pair, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self._flowing.wait()
                if pair.gone.is_set():
                    return
                self.heard += data
                sink.sendall(self._change(data) if source is pair.far else data)
        except OSError:
            pass  # cut, by either side or by the test
        finally:
            pair.cut()
