"""While a worker is replaced: what is asked of its place waits until what was asked before has been decided.

A worker that is replaced hands out what has come to it, or gives it back for its successor. Whatever
went to that one at once would overtake what is given back.
"""

from __future__ import annotations

from collections.abc import Callable

from skywalker.wire.junction import NIL
from workers.calls.inquiries import Carrier
from workers.engine.loop import Alarm, Turn
from workers.engine.points import reached
from workers.mesh.link import Link


class Succession:
    """Of one of them; `over` is called once, when its successor can be asked: after `patience_s` seconds at most."""

    def __init__(self, old: Link, turn: Turn, patience_s: float, over: Callable[[], None]) -> None:
        self.carrier: Carrier | None = None
        self.number = 0
        self._old = old
        self._turn = turn
        self._over: Callable[[], None] | None = over
        self._alarm = Alarm()
        self._alarm.set(turn, turn.now + patience_s, self.end)

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
