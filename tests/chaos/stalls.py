"""How long workers were kept waiting for a core, which is no fault of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.chaos.clock import Clock
from tests.promises.history import Stall

LOOK_S: Final = 0.02
NEW_WORKERS_S: Final = 0.2

STALL_S: Final = 0.005
"""Seconds from which on it counts."""


class Starvation:
    """Looks now and then at what the kernel says of some processes, and tells the clock of their stalls."""

    def __init__(self, clock: Clock, pids: Callable[[], Iterable[int]]) -> None:
        self._clock = clock
        self._pids = pids
        self._waited: dict[int, int] = {}  # by pid, ns in all
        self._looked_at = self._listed_at = 0.0
        self._listed: list[int] = []

    def look(self) -> None:
        """Begin, and go on."""
        now = self._clock.now
        if now >= self._listed_at + NEW_WORKERS_S:
            self._listed_at, self._listed = now, [*self._pids()]
        for pid in self._listed:
            try:
                waited = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
            except OSError:
                continue  # it has ended
            # Of several waits between two looks it is not known how long each was: they count as one.
            seconds = (waited - self._waited.get(pid, waited)) / 1e9
            self._waited[pid] = waited
            if seconds > STALL_S:
                self._clock.stalls.append(Stall(self._looked_at, now, seconds))
        self._looked_at = now
        self._clock.at(now + LOOK_S, self.look)
