"""Speaks TLS in front of a node that does not, in the ways that TLS allows and few servers use."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading

from skywalker.tls.records import Records


def usual_context(cert: str, key: str) -> ssl.SSLContext:
    """Return how most servers speak TLS, unlike a node: from version 1.2 on, and with tickets, for which none asked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


class TlsProxy:
    """Passes plaintext between clients and the node at `host` and `port`, for as long as a `with` block."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        self._target = (host, port)
        self.context = context
        """For connections from now on."""
        self._threads: list[threading.Thread] = []
        self._near: list[socket.socket] = []
        self._closing = False
        self.says_goodbye = True
        self.has_stopped_reading = False
        self.accepted = 0
        self.shaken = 0
        self.failures: list[ssl.SSLError] = []

    def __enter__(self) -> TlsProxy:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._spawn(self._accept)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    @property
    def address(self) -> str:
        return f"skywalkers://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """End every connection, with a word of TLS for it or without."""
        near, self._near = self._near, []
        for sock in near:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RD)  # whose thread ends it

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]  # any callable
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._near.append(near)
            self.accepted += 1
            self._spawn(self._pump, near)

    def _pump(self, near: socket.socket) -> None:
        records = Records(self.context, server_side=True)
        with near, socket.create_connection(self._target) as far:
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while not self._closing and self._turn(near, far, records):
                    pass
                if self.says_goodbye and records.established:
                    records.close()
            except ssl.SSLError as error:
                self.failures.append(error)
            except OSError:
                return
            with contextlib.suppress(OSError):
                self._say(near, records)

    def _turn(self, near: socket.socket, far: socket.socket, records: Records) -> bool:
        """Pass on what there is; whether that was not the end."""
        readers = [far] if self.has_stopped_reading else [near, far]
        for sock in select.select(readers, [], [], 0.05)[0]:
            data = sock.recv(65536)
            if not data:
                return False
            if sock is far:
                records.write(data)
            else:
                records.feed(data)
                if not records.established and records.shake_hands():
                    self.shaken += 1
                if records.established and (plain := records.read()):
                    far.sendall(plain)
            self._say(near, records)
        return True

    def _say(self, near: socket.socket, records: Records) -> None:
        near.sendall(records.output())
