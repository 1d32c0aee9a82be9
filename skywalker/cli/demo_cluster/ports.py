"""Ports for programs that must be told theirs before they start."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Sequence
from typing import Final

from skywalker.address import Address
from skywalker.errors import SkywalkerError

HOST: Final = "127.0.0.1"

# Below those that Linux gives to connections, so that none is taken before the program has it.
_FIRST, _LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """Return different ports of this machine that are free, for TCP and UDP. Raises SkywalkerError."""
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(range(_FIRST, _LAST), 1000):
            with contextlib.ExitStack() as attempt:
                try:
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                        attempt.enter_context(socket.socket(socket.AF_INET, kind)).bind((HOST, port))
                except OSError:
                    continue
                held.push(attempt.pop_all())
            ports.append(port)
            if len(ports) == count:
                return ports
    raise SkywalkerError(f"there are no {count} free ports from {_FIRST} to {_LAST} at {HOST}")


def free_addresses(names: Sequence[str]) -> dict[str, Address]:
    """Return an address for each name, as free_ports()."""
    return {name: Address(HOST, port) for name, port in zip(names, free_ports(len(names)), strict=True)}
