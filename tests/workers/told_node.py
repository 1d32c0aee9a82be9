"""A node as an agent sees it, that does as a test tells it: who it says it is, when it hangs, what it pushes."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading
from typing import Any

import msgpack

from skywalker.address import Address
from skywalker.members import Member
from skywalker.ring import random_tokens, slices

HOST = "127.0.0.1"


def framed(message: Any) -> bytes:
    body: bytes = msgpack.packb(message)
    return len(body).to_bytes(2, "big") + body


class ToldNode:
    """Serves on a free port for a `with` block. Change its fields as you like; they hold from the next message on."""

    def __init__(self, name: str = "told", *, id: str = "", port: int = 0) -> None:
        self._listener = socket.create_server((HOST, port))
        self.address = Address(*self._listener.getsockname())
        self.member = Member(id or f"id-{name}", name, self.address, 2, False, tuple(random_tokens(4)))
        self.version = ""
        self.ring: list[Member] = []
        self.page = 2  # members that fit in an answer
        self.further: bytes | None = None  # said instead of any page of its ring but the first
        self.hangs = False
        self.greeting: Any = None  # instead of its own, an answer to :hello
        self.garbage = b""  # said right after the greeting
        self.accepted = 0
        self.pings = 0
        self.asked = 0
        self.joined: list[str] = []  # what it was told by :join
        self.options: list[dict[str, Any]] = []  # of each :hello
        self._lock = threading.Lock()
        self._open: dict[socket.socket, threading.Thread] = {}
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    def __enter__(self) -> ToldNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    @property
    def connections(self) -> int:
        """How many are open."""
        with self._lock:
            return len(self._open)

    def die(self) -> None:
        """Close its port and all its connections, as a kernel does for a killed process."""
        if self._acceptor.is_alive():
            self._listener.shutdown(socket.SHUT_RDWR)
            self._acceptor.join()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close all its connections."""
        with self._lock:
            found = list(self._open.items())
        for sock, thread in found:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            thread.join()

    def push(self, *, version: str = "", leaving: bool = False) -> None:
        """Say that its ring has changed, or that it leaves, on every connection."""
        self.version = version or self.version
        self.say(framed([":ring", None, {"version": self.version, "leaving": leaving}]))

    def say(self, data: bytes) -> None:
        """Write on every connection."""
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.sendall(data)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=[sock])
            with self._lock:
                self._open[sock] = thread
                thread.start()
                # Only now: who has seen it counted may cut it.
                self.accepted += 1

    def _serve(self, sock: socket.socket) -> None:
        stream = sock.makefile("rb")
        with sock, stream, contextlib.suppress(OSError):
            while head := stream.read(2):
                message = msgpack.unpackb(stream.read(int.from_bytes(head, "big")), strict_map_key=False)
                if not self.hangs:
                    sock.sendall(self._answer(message))
        with self._lock:
            self._open.pop(sock, None)

    def _answer(self, message: list[Any]) -> bytes:
        match message:
            case [":hello", id, options]:
                self.options.append(options)
                return framed([":hello", id, self.greeting or self._own_greeting()]) + self.garbage
            case [":ping", id]:
                self.pings += 1
                return framed([":ping", id, True])
            case [":nodes", id, *after]:
                self.asked += 1
                left = [each for each in sorted(self.ring, key=lambda each: each.id) if [each.id] > after]
                page = {"version": self.version, "more": len(left) > self.page}
                if after and self.further is not None:
                    return self.further
                return framed([":nodes", id, page | {"nodes": [each.as_map() for each in left[: self.page]]}])
            case [":join", id, address]:
                self.joined.append(address)
                return framed([":join", id, True])
        return b""

    def _own_greeting(self) -> dict[str, Any]:
        member = dataclasses.replace(self.member)
        told = {key: value for key, value in member.as_map().items() if key not in ("id", "tokens")}
        tokens = slices(member.tokens, member.workers)
        return {"version": "0", "node": member.id, "worker": 0, "tokens": tokens, "ring": self.version, **told}
