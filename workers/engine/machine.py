"""What a worker and its supervisor ask of the machine that they run on: time, luck, readiness and sockets.

They ask the one that they are made with, or are given what they need of it: the supervisor makes them with MACHINE,
which nobody else names, and a test with a machine that has a clock and a network of its own. Who forks and kills is
process/child.py, in the same way.
"""

from __future__ import annotations

import random
import secrets
import select
import socket
import time
from collections.abc import Callable
from typing import Final, Protocol


class Poller(Protocol):
    """Which descriptors are ready, as select.epoll tells."""

    def register(self, fd: int, events: int, /) -> None:
        """Tell of these events of a descriptor."""

    def modify(self, fd: int, events: int, /) -> None:
        """Tell of others."""

    def unregister(self, fd: int, /) -> None:
        """Tell of none any more."""

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        """Return the descriptors that are ready, each with its events; wait for so many seconds for the first."""


class Machine:
    """The real one."""

    def __init__(self) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        """Seconds, on a clock that all processes of the machine share."""
        self.unix: Callable[[], float] = time.time
        """Seconds since 1970, as whoever keeps the machine has set its clock: for people to read."""
        self.worked: Callable[[], float] = time.thread_time
        """Seconds that this thread has had a processor."""
        self.random: Callable[[], float] = random.random
        """From 0 to below 1."""
        self.token: Callable[[int], str] = secrets.token_hex
        """So many bytes that nobody can guess, in hex."""

    def nonce(self, size: int) -> bytes:
        """Return such bytes themselves."""
        return bytes.fromhex(self.token(size))

    def poller(self) -> Poller:
        """Return a new one. It is to be made after the fork: an inherited epoll would be the parent's too."""
        return select.epoll()

    def adopt(self, fd: int) -> socket.socket:
        """Return the socket whose descriptor another process has passed on."""
        return socket.socket(fileno=fd)

    def tcp(self, family: socket.AddressFamily) -> socket.socket:
        """Return a TCP socket that does not block, to dial by."""
        return socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return two connected ends that do not block. They keep packets whole, so a death cuts none in half."""
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in ends:
            end.setblocking(False)
        return ends


MACHINE: Final = Machine()
