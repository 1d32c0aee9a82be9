"""Which worker gets a new connection: the client's source port says it.

Left alone, the kernel spreads connections over the listeners of a port by a hash that nobody
outside can foresee. A short program attached to the group lets a client choose: worker
`(source port >> 1) % workers`. The lowest bit does not count, since the ports that connect()
hands out by itself share one parity; so plain clients spread evenly as well.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final

from skywalker.reuseport import RETURN_CONSTANT, Instruction, attach

_LOAD_BYTE, _LOAD_HALF, _AND, _SHIFT_RIGHT, _MODULO = 0x30, 0x28, 0x54, 0x74, 0x94
_JUMP, _JUMP_IF_EQUAL, _RETURN_ACCUMULATOR = 0x05, 0x15, 0x16
_NETWORK_HEADER: Final = 0x1_0000_0000 - 0x100000
"""SKF_NET_OFF: the program sees the payload of TCP at 0, and the header of IP from here on."""

_NO_LISTENER: Final = 0xFFFFFFFF
"""An index out of range: the kernel goes on with its hash."""


def _program(workers: int) -> list[Instruction]:
    """Return the instructions; an address header with options or extensions is left to the hash."""
    return [
        (_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
        (_JUMP_IF_EQUAL, 0, 2, 0x45),  # IPv4 whose header has 20 bytes
        (_LOAD_HALF, 0, 0, _NETWORK_HEADER + 20),
        (_JUMP, 0, 0, 5),  # to the shift
        (_AND, 0, 0, 0xF0),
        (_JUMP_IF_EQUAL, 0, 6, 0x60),  # IPv6
        (_LOAD_BYTE, 0, 0, _NETWORK_HEADER + 6),
        (_JUMP_IF_EQUAL, 0, 4, socket.IPPROTO_TCP),
        (_LOAD_HALF, 0, 0, _NETWORK_HEADER + 40),
        (_SHIFT_RIGHT, 0, 0, 1),
        (_MODULO, 0, 0, workers),
        (_RETURN_ACCUMULATOR, 0, 0, 0),
        (RETURN_CONSTANT, 0, 0, _NO_LISTENER),
    ]


def steer(listeners: Sequence[socket.socket]) -> bool:
    """Have the source port choose among listeners of one address, in the order in which they began to listen.

    Returns False where the system cannot: then its hash goes on choosing.
    """
    assert listeners
    if len(listeners) == 1:
        return True  # whatever the source port: and the kernel takes no program for one alone
    try:
        attach(listeners[0], _program(len(listeners)))
    except OSError:
        return False
    return True
