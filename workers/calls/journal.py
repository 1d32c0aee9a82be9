"""What one worker has its journal say of the calls that it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.journal.names import MAX_NAMES
from skywalker.journal.page import Page
from skywalker.journal.recorder import PAGE_RECORDS, Recorder
from skywalker.journal.writer import Writer
from skywalker.ring import token_of
from workers.engine.loop import Alarm, Turn

MAX_TOKENS: Final = 16_384
"""Topics whose token is remembered."""

MAX_NAMED_BYTES: Final = 16 * 1024 * 1024
"""Bytes of topics that are named, in the life of a worker."""

PAGE_S: Final = 1.0
"""Seconds until a record is handed to the disk, if the page is not full before."""

DICE: Final = 2**32
"""Random numbers are below this: a linear congruential generator, of which the high bits are taken."""

MAX_CONNECTIONS: Final = 2**32
"""Then numbers of connections begin anew."""


class Journal:
    """Records every so many-th call, on average. Costs a worker that keeps none a look at a pointer."""

    __slots__ = (
        "_alarm", "_connections", "_dice", "_every", "_gap", "_named", "_named_bytes", "_recorder", "_tokens",
        "_turn", "_writer",
    )  # fmt: skip

    def __init__(self, writer: Writer, every: int, turn: Turn, luck: Callable[[], float]) -> None:
        """`luck` is random, from 0 to below 1."""
        self._writer = writer
        self._every = every
        self._dice = int(luck() * DICE)
        self._gap = 0  # calls that are not recorded until one is
        self._set_gap()
        self._turn = turn
        self._recorder: Recorder = Page()
        self._tokens: dict[bytes, int] = {}
        self._named: set[int] = set()
        self._named_bytes = 0
        self._connections = 0
        self._alarm = Alarm()

    def number(self) -> int:
        """Return the number of a new connection."""
        self._connections = (self._connections + 1) % MAX_CONNECTIONS
        return self._connections

    def follow(self, members: bytes) -> None:
        """Calls go by the ring of these members, in MessagePack, from now on."""
        self._hand_over()
        self._writer.follow(members)

    def add(self, topic: bytes, since: float, size: int, connection: int, codes: int) -> None:
        """Record a call that was just answered, unless its turn to be sampled has not come: see Recorder.add()."""
        if self._every > 1:
            if self._gap:
                self._gap -= 1
                return
            self._set_gap()
        token = self._tokens.get(topic)
        if token is None:
            token = self._meet(topic)
        now = self._turn.now
        recorder = self._recorder
        recorder.add(now, token, now - since, size, connection, codes)
        if recorder.count == PAGE_RECORDS:
            self._hand_over()
        elif recorder.count == 1:
            self._alarm.set(self._turn, now + PAGE_S, self._hand_over)

    def _set_gap(self) -> None:
        """Choose how many calls to leave out, at random: at even distances one might meet only the sends of pairs."""
        self._dice = (self._dice * 1664525 + 1013904223) % DICE
        self._gap = self._dice * (2 * self._every - 1) // DICE

    def _meet(self, topic: bytes) -> int:
        """Return the token of a topic, which is named if it is new."""
        if len(self._tokens) == MAX_TOKENS:
            self._tokens.clear()
        token = self._tokens[topic] = token_of(topic)
        if token not in self._named and len(self._named) < MAX_NAMES and self._named_bytes < MAX_NAMED_BYTES:
            self._named.add(token)
            self._named_bytes += len(topic)
            self._writer.name(token, topic)
        return token

    def _hand_over(self) -> None:
        self._alarm.off(self._turn)
        recorder = self._recorder
        if recorder.count:
            recorder.begin(self._writer.write(recorder.data(), recorder.count))

    def close(self) -> None:
        """Write the rest."""
        self._hand_over()
        self._writer.close()
