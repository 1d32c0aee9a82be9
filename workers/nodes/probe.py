"""Whether the other end of a link still lives, asked over the link itself, as long as there is a reason to doubt it.

A node that is on the ring lives: those who make the ring see to that. One that is not may be leaving, or see
another ring than we do, and its calls are as good as any; or it hangs, or is cut off, and nobody else would notice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.wire.junction import NIL
from workers.calls.inquiries import Carrier
from workers.engine.loop import Alarm, Turn
from workers.mesh.link import Link

ANSWER_S: Final = 1.0
"""Seconds for an answer, and until the next question."""


class Probe:
    """About one link, which is closed if it is not answered; `is_wanted` tells whether to go on asking."""

    def __init__(self, link: Link, turn: Turn, is_wanted: Callable[[], bool]) -> None:
        self._link = link
        self._turn = turn
        self._is_wanted = is_wanted
        self._alarm = Alarm()

    def look(self) -> None:
        """Begin to ask, if there is a reason; has no effect while that goes on."""
        if self._alarm.at is None and self._is_wanted():
            self._ask()

    def ask(self) -> None:
        """Ask in any case, at least once."""
        if self._alarm.at is None:
            self._ask()

    def end(self) -> None:
        """Ask no more: the link has ended."""
        self._alarm.off(self._turn)

    def _ask(self) -> None:
        self._question = _Question()
        self._link.ask_census(self._question, NIL)  # who waits where does not matter
        self._alarm.set(self._turn, self._turn.now + ANSWER_S, self._look)

    def _look(self) -> None:
        if not self._question.answered:
            self._link.catch_up()  # it may be us who were stopped: alarms come first in a turn
        if not self._question.answered:
            self._link.close(f"it is in doubt whether it lives, and it does not answer within {ANSWER_S:g} s")
        elif self._is_wanted():
            self._ask()


class _Question:
    """What a link needs of a :topic, where nobody waits for the answer but the one who doubts."""

    def __init__(self) -> None:
        self.answered = False
        self.carrier: Carrier | None = None
        self.number = 0

    def answer(self, info: bytes) -> None:
        """It lives."""
        self.answered = True

    def end(self) -> None:
        """The link has ended."""
