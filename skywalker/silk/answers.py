"""What this node has answered: a request that comes again is answered from here, and runs no handler twice.

Knows no socket and no clock, as the other pure parts of Silk.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from skywalker.limits import MIB
from skywalker.wire.silk import Message

KEEP_S: Final = 300.0
"""Seconds for which an answer is remembered: longer than nearly anybody goes on to ask."""

MAX_BYTES: Final = 64 * MIB
"""Bytes of answers remembered. Past that the oldest are forgotten, and what comes again after that is done again."""

OVERHEAD: Final = 500
"""Bytes that an answer takes besides its data, about."""


@dataclasses.dataclass(slots=True)
class _Known:
    came_at: float
    frame: bytes | None = None  # None while the handler is at it


class Answers:
    """The requests that have come, by sender and id, and what was said to each."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._known)

    def is_new(self, message: Message, now: float) -> bool:
        """Whether this request has never come before; from now on it has."""
        self._forget_old(now)
        key = (message.src, message.id)
        if key in self._known:
            return False
        self._known[key] = _Known(now)
        self._bytes += OVERHEAD
        return True

    def answer_to(self, message: Message) -> bytes | None:
        """Return what was said to this request, None if nothing was so far."""
        known = self._known.get((message.src, message.id))
        return None if known is None else known.frame

    def answered(self, message: Message, frame: bytes) -> None:
        """Remember what was said to a request."""
        known = self._known.get((message.src, message.id))
        if known is not None and known.frame is None:
            known.frame = frame
            self._bytes += len(frame)

    def withdraw(self, message: Message) -> None:
        """Have a request be new when it comes again: nothing was done for it."""
        self._drop((message.src, message.id))

    def _forget_old(self, now: float) -> None:
        while self._known:
            key, oldest = next(iter(self._known.items()))
            if self._bytes < MAX_BYTES and now - oldest.came_at < KEEP_S:
                return
            self._drop(key)

    def _drop(self, key: tuple[str, str]) -> None:
        known: Any = self._known.pop(key, None)
        if known is not None:
            self._bytes -= OVERHEAD + len(known.frame or b"")
