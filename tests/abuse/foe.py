"""One hostile connection, of which nobody waits for anything, and the process that has some of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from skywalker.tls.records import Records
from tests.helpers import time_factor
from tests.workers.wire_client import RST_ON_CLOSE, SECURE, Address

TCP_REPAIR = 19

SMALL_BUFFER = 4096
"""Bytes that the kernel takes at most for one who does not read, about."""

SETTING_UP_S = 20.0

STRANGER = "127.0.0.2"
"""An address that a node with [access] does not know."""


class Target(NamedTuple):
    """The doors of a node, and for each of its workers a topic that it owns."""

    junction: Address
    pubsub: Address
    topics: tuple[str, ...]


Attack = Callable[[Target], Iterator[float]]
"""Yields the seconds to rest, for the first time once it is in effect; goes on until its process is killed."""


class Foe:
    """A connection that comes back whenever the node closes it. It speaks TLS where nothing else is spoken."""

    def __init__(
        self,
        address: Address,
        first: bytes = b"",
        *,
        receive_buffer: int | None = None,
        host: str = "",
        raw: bool = False,
    ) -> None:
        """Connect, from `host` if it is given, and say `first`, as on every connection that comes after it.

        One that is `raw` says what it says without TLS, wherever it is.
        """
        self._address = address
        self._first = first
        self._host = host
        self._receive_buffer = receive_buffer
        self._context = None if raw else SECURE.get(address)
        self._open()

    def _open(self) -> None:
        self.socket = socket.socket()
        if self._receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer)
        self.socket.settimeout(SETTING_UP_S)
        if self._host:
            self.socket.bind((self._host, 0))
        self.socket.connect(self._address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            self._shake_hands()
            self.socket.sendall(self._sealed(self._first))
        self.socket.setblocking(False)

    def _shake_hands(self) -> None:
        self._records = self._context and Records(self._context, server_hostname=self._address[0])
        self._unsent = b""
        while self._records is not None and not self._records.established:
            self._records.shake_hands()
            self.socket.sendall(self._records.output())
            if not self._records.established:
                self._records.feed(self.socket.recv(1 << 16))

    def _sealed(self, data: bytes) -> bytes:
        """Return what is to be sent so that the node reads this."""
        if self._records is None:
            return data
        self._records.write(data)
        return self._records.output()

    def say(self, data: bytes) -> None:
        """Send what the kernel takes of it."""
        try:
            if self._records is None:
                self.socket.send(data)
            else:  # the rest of a record has to follow
                self._unsent = self._unsent or self._sealed(data)
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except BlockingIOError:
            pass
        except (ConnectionError, ssl.SSLError):
            self.again()

    def hear(self, size: int = 1 << 20) -> bytes:
        """Return what there is to read, up to so many bytes."""
        data = b""
        try:
            data = self.socket.recv(size)
            if not data:
                self.again()
            elif self._records is not None:
                self._records.feed(data)
                data = self._records.read()
        except BlockingIOError:
            pass
        except (ConnectionError, ssl.SSLError):
            self.again()
        return data

    def await_bytes(self, count: int) -> None:
        """Read so many bytes, which are on their way."""
        deadline = time.monotonic() + SETTING_UP_S * time_factor()
        while count > 0:
            assert time.monotonic() < deadline, f"{count} bytes did not come"
            count -= len(self.hear(count))
            time.sleep(0.001)

    def again(self) -> None:
        """Close, and connect anew."""
        self.socket.close()
        self._open()

    def reset(self) -> None:
        """Close with a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
        self.socket.close()

    def vanish(self) -> None:
        """Be gone without a packet, as a machine whose cable was cut. Only root can."""
        self.socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        self.socket.close()


@contextlib.contextmanager
def attacked(attack: Attack, target: Target) -> Iterator[None]:
    """Have the attack go on for the length of a `with` block, in a process that leaves the processor to all others."""
    context = multiprocessing.get_context("fork")
    is_on = context.Event()

    def run() -> None:
        os.nice(19)
        for pause in attack(target):
            is_on.set()
            time.sleep(pause)

    process = context.Process(target=run, daemon=True)
    process.start()
    try:
        assert is_on.wait(SETTING_UP_S * time_factor()), "the attack did not get going"
        yield
        assert process.is_alive(), "the attack has failed"
    finally:
        process.kill()
        process.join()
