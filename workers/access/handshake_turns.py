"""Handshakes that can go on, each of which takes as long as many calls, and costs who only begins one next to nothing.

All together, and with the accepting of who is to shake hands, they have half of the time, and everybody else the other
half: after what they took they wait for as long, except for MOST_S, so that one alone does not wait.
"""

from __future__ import annotations

from typing import Final, Protocol

from workers.engine.loop import Turn

MOST_S: Final = 0.001
"""Seconds for which they go on before others have had as many, but for how long one takes."""


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
        self._even_at = 0.0  # when others will have had as much time as they, if these do not go on before

    def come(self, handshake: Waiting) -> None:
        """Have one go on, now or when it is its turn."""
        if not self._waiting and self._may_go_on():
            self._go_on(handshake)
            return
        if not self._turn.heavy:
            self._turn.heavy.append(self)
        self._waiting[handshake] = None
        handshake.pause()

    def go(self, handshake: Waiting) -> None:
        """One has ended, whether or not it waits."""
        self._waiting.pop(handshake, None)

    def rested(self) -> None:
        """Have as many go on as there is time for."""
        while self._waiting and self._may_go_on():
            handshake = next(iter(self._waiting))
            self.go(handshake)
            self._go_on(handshake)
        if self._waiting:
            self._turn.heavy.append(self)

    def _may_go_on(self) -> bool:
        return self._even_at < self._turn.now + MOST_S

    def _go_on(self, handshake: Waiting) -> None:
        began = self._turn.clock()
        handshake.go_on()
        self._turn.now = now = self._turn.clock()
        self._even_at = max(self._even_at, began) + 2 * (now - began)
