"""Handshakes that can go on: one a turn, since each takes as long as many calls, and who begins one pays far less.

All together have the share of a turn that one connection has, so a flood of them slows down nobody but those who come.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Protocol

from workers.turn import Turn


class Waiting(Protocol):
    """One of them."""

    gone: bool
    """Whether it has ended meanwhile."""

    def pause(self) -> None:
        """Look no more for what comes: it waits for its turn."""

    def go_on(self) -> None:
        """Its turn has come."""


class Handshakes:
    """Those of one worker, in the order in which they came."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._waiting: deque[Waiting] = deque()  # and as long as there are any, this rests

    def come(self, handshake: Waiting) -> None:
        """Have one go on, now or when it is its turn."""
        if not self._waiting and not self._turn.is_long():
            self._go_on(handshake)
            return
        if not self._waiting:
            self._turn.resting.append(self)
        self._waiting.append(handshake)
        handshake.pause()

    def rested(self) -> None:
        """Have the next one go on."""
        while self._waiting:
            handshake = self._waiting.popleft()
            if not handshake.gone:
                self._go_on(handshake)
                break
        if self._waiting:
            self._turn.resting.append(self)

    def _go_on(self, handshake: Waiting) -> None:
        handshake.go_on()
        self._turn.now = monotonic()  # so that the turn knows how long it is by now
