"""What this node has answered: a request that comes again is answered from here, and runs no handler twice.

Knows no socket and no clock, as the other pure parts of Silk.
"""

from __future__ import annotations

from typing import Final

from skywalker.limits import MIB
from skywalker.wire.silk import Message

KEEP_S: Final = 300.0
"""Seconds for which an answer is remembered: longer than nearly anybody goes on to ask."""

MAX_BYTES: Final = 64 * MIB
"""Bytes of answers remembered. Past that the oldest are forgotten, and what comes again after that is done again."""

OVERHEAD: Final = 500
"""Bytes that an answer takes besides its data, about."""


class Answers:
    """The requests that have come, by sender and id, and what was said to each."""

    def __init__(self) -> None:
        self._begun: set[tuple[str, str]] = set()  # whose handlers run; there are only so many at a time
        self._given: dict[tuple[str, str], tuple[float, bytes]] = {}  # when, and what; the oldest first
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._begun) + len(self._given)

    def is_new(self, message: Message, now: float) -> bool:
        """Whether this request has never come before; from now on it has."""
        self._forget_old(now)
        key = (message.src, message.id)
        if key in self._begun or key in self._given:
            return False
        self._begun.add(key)
        return True

    def answer_to(self, message: Message) -> bytes | None:
        """Return what was said to this request, None if nothing was so far."""
        _, frame = self._given.get((message.src, message.id), (0.0, None))
        return frame

    def answered(self, message: Message, frame: bytes, now: float) -> None:
        """Remember what is said to a request that has come."""
        key = (message.src, message.id)
        if key in self._begun:
            self._begun.remove(key)
            self._given[key] = (now, frame)
            self._bytes += OVERHEAD + len(frame)

    def withdraw(self, message: Message) -> None:
        """Have a request be new when it comes again: nothing was done for it."""
        self._begun.discard((message.src, message.id))

    def _forget_old(self, now: float) -> None:
        while self._given:
            key, (given_at, frame) = next(iter(self._given.items()))
            if self._bytes < MAX_BYTES and now - given_at < KEEP_S:
                return
            del self._given[key]
            self._bytes -= OVERHEAD + len(frame)
