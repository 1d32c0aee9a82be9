"""While a sibling is replaced: what is asked of its place waits until what was asked before has been decided.

A worker that is replaced hands out what has come to it, or gives it back for its successor. Whatever
went to that one at once would overtake what is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.wire.junction import NIL
from workers.calls.inquiries import Carrier
from workers.engine.loop import Alarm, Turn
from workers.engine.points import reached
from workers.mesh.link import Link

PATIENCE_S: Final = 0.7
"""Seconds for one that is replaced to say the last of what it has handed out, and to give back what it has not, before
its successor is asked and heard. That waits longer for us."""


class Succession:
    """Of one of them; `over` is called once, when its successor can be asked."""

    def __init__(self, old: Link, turn: Turn, over: Callable[[], None]) -> None:
        self.carrier: Carrier | None = None
        self.number = 0
        self._old = old
        self._turn = turn
        self._over: Callable[[], None] | None = over
        self._alarm = Alarm()
        self._alarm.set(turn, turn.now + PATIENCE_S, self.end)

    def ask(self) -> None:
        """All that waits there was asked back: have the old worker say when it has heard that."""
        if self._old.closed:
            self.end()
        elif self._over is not None:
            self._old.ask_census(self, NIL)  # who waits where does not matter

    def answer(self, info: bytes) -> None:
        """It has."""
        assert reached("a predecessor has given all back")
        self.end()

    def end(self) -> None:
        """It will not say so any more, or takes too long."""
        over, self._over = self._over, None
        self._alarm.off(self._turn)
        if over is not None:
            over()
