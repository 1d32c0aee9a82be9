"""How long workers were kept waiting for a core, which is no fault of theirs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.workers.processes import Node

LOOK_S: Final = 0.02
NEW_WORKERS_S: Final = 0.2


class Starvation:
    """Looks now and then at what the kernel says of each worker of a node. `longest_s` is the longest wait so far."""

    def __init__(self, running: Node, at: Callable[[float, Callable[[], None]], None]) -> None:
        self.longest_s = 0.0
        self._running = running
        self._at = at
        self._waited: dict[int, int] = {}  # by pid, ns in all
        self._list_at = 0.0
        self._workers: list[int] = []

    def look(self) -> None:
        """Begin, and go on."""
        now = time.monotonic()
        if now >= self._list_at:
            self._list_at = now + NEW_WORKERS_S
            self._workers = self._running.workers()
        for pid in self._workers:
            try:
                waited = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
            except OSError:
                continue  # it has ended
            # Of several waits between two looks it is not known how long each was: they count as one.
            self.longest_s = max(self.longest_s, (waited - self._waited.get(pid, waited)) / 1e9)
            self._waited[pid] = waited
        self._at(now + LOOK_S, self.look)
