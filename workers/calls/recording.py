"""What one worker has its journal say of the calls that its core answers.

The core fills pages of records; here topics are named, and pages handed over, in a while or when they are full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.journal.names import MAX_NAMES
from skywalker.journal.record import PAGE_BYTES, PAGE_RECORDS
from skywalker.journal.writer import Writer
from workers.core._core import Core
from workers.engine.loop import Alarm, Turn

MAX_NAMED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of topics that are named, in the life of a worker."""

PAGE_S: Final = 1.0
"""Seconds until a record is handed to the disk, if the page is not full before."""

DICE: Final = 2**32
"""The luck by which the core samples is below this."""


class Recording:
    """Records every so many-th call, on average."""

    def __init__(self, writer: Writer, every: int, turn: Turn, luck: Callable[[], float]) -> None:
        """`luck` is random, from 0 to below 1."""
        self._writer = writer
        self._every = every
        self._dice = int(luck() * DICE)
        self._turn = turn
        self._core: Core
        self._page = bytearray(PAGE_BYTES)
        self._named: set[int] = set()
        self._named_bytes = 0
        self._alarm = Alarm()

    def begin(self, core: Core) -> None:
        """Record what this core answers from now on."""
        self._core = core
        core.record(self._every, self._dice)
        core.page(self._page, PAGE_RECORDS)

    def follow(self, members: bytes) -> None:
        """Calls go by the ring of these members, in MessagePack, from now on."""
        self._hand_over()
        self._writer.follow(members)

    def named(self, token: int, topic: bytes) -> None:
        """The topic of a token is on record, perhaps for the first time."""
        if token not in self._named and len(self._named) < MAX_NAMES and self._named_bytes < MAX_NAMED_BYTES:
            self._named.add(token)
            self._named_bytes += len(topic)
            self._writer.name(token, topic)

    def moved(self) -> None:
        """A connection has come from another worker."""
        self._writer.moved()

    def recorded(self, records: int) -> None:
        """So many are in the page: it has its first, or is full."""
        if records == PAGE_RECORDS:
            self._hand_over()
        else:
            self._alarm.set(self._turn, self._turn.now + PAGE_S, self._hand_over)

    def _hand_over(self) -> None:
        self._alarm.off(self._turn)
        records = self._core.recorded
        if records:
            self._page = self._writer.write(self._page, records)
            self._core.page(self._page, PAGE_RECORDS)

    def close(self) -> None:
        """Write the rest."""
        self._hand_over()
        self._writer.close()
