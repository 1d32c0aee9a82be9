"""A message that has begun to arrive, and must go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workers.alarm import Alarm

if TYPE_CHECKING:
    from workers.turn import Turn


class Unfinished:
    """Rings if the rest of it does not come in time."""

    __slots__ = ("_alarm", "_seconds", "_turn")

    def __init__(self, turn: Turn, seconds: float, ring: Callable[[], None]) -> None:
        self._turn = turn
        self._seconds = seconds
        self._alarm = Alarm(ring)

    def watch(self, tail: bytes, *, fresh: bool) -> None:
        """There is `tail` of it now; `fresh` says that an earlier message was completed meanwhile."""
        if not tail:
            self._alarm.off(self._turn)
        elif fresh or self._alarm.at is None:
            self._alarm.set(self._turn, self._turn.now + self._seconds)

    def off(self) -> None:
        """Do not ring."""
        self._alarm.off(self._turn)
