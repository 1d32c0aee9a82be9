"""Who takes records, as all others see it; page.py is the one there is.

They are apart for the compiler: a module that knew the typed memory views of a page would carry all their code.
"""

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

    def add(self, ended: float, token: int, wait: float, size: int, connection: int, codes: int) -> None:
        """Add one record. `codes` are its method, outcome, route and door, a byte each, the first the lowest."""
        raise NotImplementedError
