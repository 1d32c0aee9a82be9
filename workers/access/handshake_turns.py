"""Handshakes that can go on, each of which takes as long as many calls, and costs who only begins one next to nothing.

All together they have half of the time at most, and everybody else the other half: they go on for as long as the turn
before had taken without them, one of them at least.
"""

from __future__ import annotations

from typing import Final, Protocol

from workers.engine.loop import Turn

MOST_S: Final = 0.001
"""Seconds of a turn that they take at most, however long others took."""

CROWD: Final = 8
"""So many that wait are a crowd, which nobody is let into: in the kernel's queue no time to say who one is runs out."""


class Waiting(Protocol):
    """One of them."""

    def pause(self) -> None:
        """Look no more for what comes: it waits for its turn."""

    def go_on(self) -> None:
        """Its turn has come."""


class Handshakes:
    """Those of one worker, in the order in which something came for them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._waiting: dict[Waiting, None] = {}
        self._left_off = 0.0  # when the last one had gone on, while any waits

    def are_a_crowd(self) -> bool:
        """Whether so many wait that nobody else should come."""
        return len(self._waiting) >= CROWD

    def come(self, handshake: Waiting) -> None:
        """Have one go on, now or when it is its turn."""
        turn = self._turn
        if not turn.heavy and not turn.is_long():
            self._go_on(handshake)
            return
        if not turn.heavy:
            turn.heavy.append(self)
            self._left_off = turn.now
        self._waiting[handshake] = None
        handshake.pause()

    def go(self, handshake: Waiting) -> None:
        """One has ended, whether or not it waits."""
        self._waiting.pop(handshake, None)

    def rested(self) -> None:
        """Have as many go on as there is time for."""
        began = self._turn.clock()
        until = began + min(began - self._left_off, MOST_S)
        while self._waiting:
            handshake = next(iter(self._waiting))
            self.go(handshake)
            self._go_on(handshake)
            if self._turn.now >= until:
                break
        if self._waiting:
            self._turn.heavy.append(self)
            self._left_off = self._turn.now

    def _go_on(self, handshake: Waiting) -> None:
        handshake.go_on()
        self._turn.now = self._turn.clock()  # so that the turn knows how long it is by now
