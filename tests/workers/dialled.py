"""Somebody at an address where a node is expected, who does as a test tells."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final

from skywalker.address import Address
from skywalker.members import Member
from skywalker.ring import random_tokens

HOST: Final = "127.0.0.1"

Behave = Callable[[socket.socket], None]


class Dialled:
    """Accepts at a free port for a `with` block, and has each connection dealt with in a thread of its own."""

    def __init__(self, behave: Behave, context: ssl.SSLContext | None = None) -> None:
        self._listener = socket.create_server((HOST, 0))
        self._behave = behave
        self._context = context
        self.accepted = 0
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        address = Address(*self._listener.getsockname())
        self.member = Member("dialled", "dialled", address, 1, False, tuple(random_tokens()))

    def __enter__(self) -> Dialled:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for sock in (*self._open, self._listener):
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._open.append(sock.dup())
                self.accepted += 1
                self._threads.append(threading.Thread(target=self._deal, args=[sock]))
                self._threads[-1].start()

    def _deal(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            if self._context is None:
                self._behave(sock)
            else:
                with self._context.wrap_socket(sock, server_side=True) as secure:
                    self._behave(secure)


def says_nothing(sock: socket.socket) -> None:
    while sock.recv(4096):
        pass


def closes(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.shutdown(socket.SHUT_RDWR)


def speaks_plainly(sock: socket.socket) -> None:
    sock.recv(4096)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    says_nothing(sock)
