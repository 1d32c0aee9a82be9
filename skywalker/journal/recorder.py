"""Who takes records: page.py has how. They are apart since, compiled, whoever knows this one need not know that."""

from __future__ import annotations

from typing import Final

from skywalker.journal.record import RECORD_BYTES

PAGE_RECORDS: Final = 8192
PAGE_BYTES: Final = PAGE_RECORDS * RECORD_BYTES


class Recorder:
    """Puts records into one page after the other; `count` of them are in this one, PAGE_RECORDS at most."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def begin(self, data: bytearray) -> None:
        """Go on with another page, of PAGE_BYTES; what it holds is overwritten."""
        raise NotImplementedError

    def data(self) -> bytearray:
        """Return the page."""
        raise NotImplementedError

    def add(self, ended: float, token: int, wait: float, size: int, connection: int, kinds: int) -> None:
        """Add one record. `kinds` are its method, outcome, route and door, a byte each, the first the lowest."""
        raise NotImplementedError
