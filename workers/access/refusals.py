"""Who was refused, in the log: not each, since whoever is refused could fill it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skywalker.errors import RequestError

SAY_EVERY_S: Final = 1.0
"""Seconds from one line to the next."""


class Refusals:
    """Of one door, or several; `say` is the method of a log, and `event` what its lines are called."""

    def __init__(self, say: Callable[..., None], event: str, clock: Callable[[], float]) -> None:
        self._say = say
        self._event = event
        self._clock = clock
        self._said_at = 0.0
        self._unsaid = 0

    def note(self, peer: str, reason: RequestError | str) -> None:
        """Somebody was refused."""
        now = self._clock()
        if now < self._said_at + SAY_EVERY_S:
            self._unsaid += 1
            return
        code = {"code": reason.code} if isinstance(reason, RequestError) else {}
        left_out = {"left_out": self._unsaid} if self._unsaid else {}
        self._say(self._event, **code, peer=peer, reason=reason, **left_out)
        self._said_at, self._unsaid = now, 0

    def end(self) -> None:
        """There will be no further line: say how many were left out since the last one."""
        if self._unsaid:
            self._say(self._event, left_out=self._unsaid)
        self._unsaid = 0
