"""Connections of which it is not known whose they are: each has a short while to say so, and they are few."""

from __future__ import annotations

from typing import Protocol

from skywalker.errors import Busy, RequestError, Unauthorized
from skywalker.limits import Limits
from workers.engine.alarm import Alarm
from workers.engine.turn import Turn
from workers.stats.closes import Close


class Unknown(Protocol):
    """One of them."""

    def turn_away(self, error: RequestError, reason: Close, text: str) -> None:
        """Have it go, with a last word if there is one for it."""


class Stranger:
    """Its place among them; `who` is a handshake first, and then the connection that came of it."""

    __slots__ = ("since", "who")

    def __init__(self, who: Unknown, since: float) -> None:
        self.who = who
        self.since = since


class Strangers:
    """All that one worker has."""

    def __init__(self, limits: Limits, turn: Turn) -> None:
        self._patience_s = limits.greeting_s
        self._most = limits.max_strangers
        self._turn = turn
        self._all: dict[Stranger, None] = {}  # the oldest first
        self._alarm = Alarm()

    def __len__(self) -> int:
        return len(self._all)

    def come(self, who: Unknown) -> Stranger:
        """Give one its place. If there are too many, the one that has been here for longest has to go."""
        if len(self._all) >= self._most:
            busy = Busy(f"more than {self._most} say not who they are", {"limit": "max_strangers", "value": self._most})
            self._turn_away(busy, "others came, and it had not said who it is")
        stranger = Stranger(who, self._turn.now)
        self._all[stranger] = None
        if self._alarm.at is None:
            self._alarm.set(self._turn, stranger.since + self._patience_s, self._look)
        return stranger

    def go(self, stranger: Stranger) -> None:
        """It is none any more, or gone."""
        self._all.pop(stranger, None)

    def _look(self) -> None:
        while self._all:
            due = next(iter(self._all)).since + self._patience_s
            if due > self._turn.now:
                self._alarm.set(self._turn, due, self._look)
                return
            self._turn.counters.limited("greeting_s")
            late = f"it did not say who it is within {self._patience_s:g} s"
            self._turn_away(Unauthorized(late), late)

    def _turn_away(self, error: RequestError, text: str) -> None:
        oldest = next(iter(self._all))
        del self._all[oldest]
        oldest.who.turn_away(error, Close.UNAUTHORIZED, text)
