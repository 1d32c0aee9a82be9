"""Handshakes that can go on, each of which takes as long as many calls, and costs who only begins one next to nothing.

While anybody else is served, all together have half of the time at most, and so has whoever is accepted to shake hands:
after what they took they wait for as long. They may be ahead by MOST_S, so that one alone does not wait.
"""

from __future__ import annotations

from typing import Final, Protocol

from workers.engine.loop import Turn

MOST_S: Final = 0.001
"""Seconds by which they may be ahead of others, but for how long one takes, or that they have of a turn without any."""

LONGEST_S: Final = 0.01
"""Seconds that they wait at most: it may be the worker that stood still while one went on."""

AWAY_S: Final = 0.01
"""Seconds in which nobody else was served, after which they have all of the time."""


class Waiting(Protocol):
    """One of them, or a door at which somebody waits."""

    def pause(self) -> None:
        """Look no more for what comes: it waits for its turn."""

    def resume(self) -> None:
        """Look for it again."""

    def go_on(self) -> None:
        """Its turn has come."""


class Handshakes:
    """Those of one worker, in the order in which something came for them."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._waiting: dict[Waiting, None] = {}
        self._even_at = 0.0  # when others will have had as much time as they, if these do not go on before

    def __contains__(self, who: Waiting) -> bool:
        """Whether one waits."""
        return who in self._waiting

    def come(self, who: Waiting) -> None:
        """Have one go on, now or when it is its turn."""
        if not self._waiting and self._may_go_on():
            self._go_on(who)
            return
        self._waiting[who] = None
        who.pause()
        self._rest()

    def go(self, who: Waiting) -> None:
        """One has ended, whether or not it waits."""
        self._waiting.pop(who, None)

    def rested(self) -> None:
        """Have as many go on as there is time for."""
        while self._waiting and self._may_go_on():
            who = next(iter(self._waiting))
            self.go(who)
            who.resume()
            self._go_on(who)
        self._rest()

    def _rest(self) -> None:
        if self._waiting:
            self._turn.resting = self
            self._turn.rests_until = 0.0 if self._are_alone() else self._even_at - MOST_S

    def _may_go_on(self) -> bool:
        turn = self._turn
        return self._even_at <= turn.now + MOST_S or (self._are_alone() and turn.now < turn.began + MOST_S)

    def _are_alone(self) -> bool:
        return self._turn.core.served_at < self._turn.now - AWAY_S

    def _go_on(self, who: Waiting) -> None:
        began = self._turn.clock()
        who.go_on()
        self._turn.now = now = self._turn.clock()
        self._even_at = min(max(self._even_at, began) + 2 * (now - began), now + LONGEST_S)
