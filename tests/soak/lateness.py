"""How long the machine keeps who would run waiting: by so much an answer may be late, which is no fault of a node."""

from __future__ import annotations

import time
from typing import Final

from tests.promises.history import Stall
from tests.soak.background import Background

NAP_S: Final = 0.02

LATE_S: Final = 0.02
"""Seconds from which on it is noted."""


class Lateness(Background):
    """Sleeps again and again."""

    def __init__(self) -> None:
        super().__init__("lateness")
        self.stalls: list[Stall] = []

    def _run(self) -> None:
        while not self._over.is_set():
            due = time.monotonic() + NAP_S
            time.sleep(NAP_S)
            now = time.monotonic()
            if now - due > LATE_S:
                self.stalls.append(Stall(due, now, now - due))
