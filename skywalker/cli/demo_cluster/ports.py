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

# One that nobody listens at yet may have been given to a program that is about to.
_given: Final[set[int]] = set()


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that are free, for TCP and UDP, and that no earlier call in this process returned.

    Raises SkywalkerError if there aren't that many.
    """
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        untried = [port for port in range(_FIRST, _LAST) if port not in _given]
        for port in random.sample(untried, min(1000, len(untried))):
            with contextlib.ExitStack() as attempt:
                try:
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                        attempt.enter_context(socket.socket(socket.AF_INET, kind)).bind((HOST, port))
                except OSError:
                    continue
                held.push(attempt.pop_all())
            ports.append(port)
            if len(ports) == count:
                _given.update(ports)
                return ports
    raise SkywalkerError(f"there are no {count} free ports from {_FIRST} to {_LAST} at {HOST}")


def free_addresses(names: Sequence[str]) -> dict[str, Address]:
    """Return an address for each name, as free_ports()."""
    return {name: Address(HOST, port) for name, port in zip(names, free_ports(len(names)), strict=True)}
