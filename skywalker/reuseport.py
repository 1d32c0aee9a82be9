"""A program that chooses among the listeners of one port, in place of the kernel's hash.

It is classic BPF: operations on an accumulator, and it returns the number of a listener, in
the order in which they began to listen. One that is out of range leaves it to the hash.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Sequence
from typing import Final

SO_ATTACH_REUSEPORT_CBPF: Final = 51

RETURN_CONSTANT: Final = 0x06
"""The operation that ends a program with its constant."""

Instruction = tuple[int, int, int, int]
"""The operation, instructions to jump over if true and if false, and a constant."""


def attach(listener: socket.socket, program: Sequence[Instruction]) -> None:
    """Have a program choose among all listeners of an address, of which one is given. Raises OSError if it cannot."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("@HBBI", *each) for each in program))
    whole = struct.pack("@HP", len(program), ctypes.addressof(code))
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, whole)
