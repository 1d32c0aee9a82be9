"""A page of records while it is filled. Compiled, a record costs some ten nanoseconds."""

from __future__ import annotations

from typing import Final

from skywalker.journal.record import RECORD_BYTES

PAGE_RECORDS: Final = 8192
PAGE_BYTES: Final = PAGE_RECORDS * RECORD_BYTES


class Recorder:
    """Puts records into one page after the other. Whoever calls add() sees that there is room()."""

    __slots__ = ("_numbers", "_page", "_times", "_tokens", "_waits", "count")

    def __init__(self) -> None:
        self.begin(bytearray(PAGE_BYTES))

    def begin(self, page: bytearray) -> None:
        """Go on with another page, of PAGE_BYTES; what it holds is overwritten."""
        self._page = page
        whole = memoryview(page)
        # The same bytes as each type of field has them. Native order is little-endian, which settings.py sees to.
        self._times = whole.cast("d")
        self._tokens = whole.cast("q")
        self._waits = whole.cast("f")
        self._numbers = whole.cast("I")
        self.count = 0

    def room(self) -> int:
        """Return how many records more the page takes."""
        return PAGE_RECORDS - self.count

    def page(self) -> bytearray:
        """Return the page, of which the first `count` records are filled."""
        return self._page

    def add(self, ended: float, token: int, wait: float, size: int, connection: int, kinds: int) -> None:
        """Add one record. `kinds` are its method, outcome, route and door, a byte each, the first the lowest."""
        at = self.count
        self._times[4 * at] = ended
        self._tokens[4 * at + 1] = token
        self._waits[8 * at + 4] = wait
        self._numbers[8 * at + 5] = size
        self._numbers[8 * at + 6] = connection
        self._numbers[8 * at + 7] = kinds
        self.count = at + 1
