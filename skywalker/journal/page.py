"""A page of records while it is filled."""

from __future__ import annotations

from skywalker.journal.recorder import PAGE_BYTES, Recorder


class Page(Recorder):
    """The records are put where they are to stand, as numbers and not as objects."""

    __slots__ = ("_data", "_numbers", "_times", "_tokens", "_waits")

    def __init__(self) -> None:
        self.begin(bytearray(PAGE_BYTES))

    def begin(self, data: bytearray) -> None:
        self._data = data
        whole = memoryview(data)
        # The same bytes as each type of field has them. Native order is little-endian, which settings.py sees to.
        self._times = whole.cast("d")
        self._tokens = whole.cast("q")
        self._waits = whole.cast("f")
        self._numbers = whole.cast("I")
        self.count = 0

    def data(self) -> bytearray:
        return self._data

    def add(self, ended: float, token: int, wait: float, size: int, connection: int, codes: int) -> None:
        at = self.count
        self._times[4 * at] = ended
        self._tokens[4 * at + 1] = token
        self._waits[8 * at + 4] = wait
        self._numbers[8 * at + 5] = size
        self._numbers[8 * at + 6] = connection
        self._numbers[8 * at + 7] = codes
        self.count = at + 1
