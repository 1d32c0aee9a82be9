"""A page of records while it is filled."""

from __future__ import annotations

import struct
from typing import Final

from skywalker.journal.record import PAGE_BYTES, RECORD_BYTES

_RECORD: Final = struct.Struct("<dqfIII")
assert _RECORD.size == RECORD_BYTES


class Page:
    """`count` records are in it, PAGE_RECORDS at most."""

    def __init__(self) -> None:
        self.begin(bytearray(PAGE_BYTES))

    def begin(self, data: bytearray) -> None:
        """Go on with another page, of PAGE_BYTES; what it holds is overwritten."""
        self.data = data
        self.count = 0

    def add(self, ended: float, token: int, wait: float, size: int, connection: int, codes: int) -> None:
        """Add one record. `codes` are its method, outcome, route and door, a byte each, the first the lowest."""
        _RECORD.pack_into(self.data, RECORD_BYTES * self.count, ended, token, wait, size, connection, codes)
        self.count += 1
