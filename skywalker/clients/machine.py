"""What a client asks of the machine that it runs on, besides the time and what its event loop or its thread does."""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import Callable
from typing import Final


class Machine:
    """The real one. An event loop that is on another has that as its `machine`."""

    def __init__(self) -> None:
        self.random: Callable[[], float] = random.random
        """From 0 to below 1."""
        self.nonce: Callable[[int], bytes] = secrets.token_bytes
        """So many bytes that nobody can guess."""

    def tcp(self, family: socket.AddressFamily) -> socket.socket:
        """Return a TCP socket that does not block, to dial by."""
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        return sock


MACHINE: Final = Machine()


def machine_of(loop: object) -> Machine:
    """Return the machine that an event loop is on."""
    machine: Machine = getattr(loop, "machine", MACHINE)
    return machine
