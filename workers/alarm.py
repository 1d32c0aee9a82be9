"""A deadline of a connection rather than of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.turn import Turn


class Alarm:
    """Calls `ring` when its time has come, unless it was set off before."""

    __slots__ = ("at", "ring")

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring
        self.at: float | None = None

    def set(self, turn: Turn, at: float) -> None:
        """Ring at that time and at no other."""
        self.off(turn)
        self.at = at
        turn.deadlines.add(self, at)

    def off(self, turn: Turn) -> None:
        """Do not ring."""
        if self.at is not None:
            turn.deadlines.discard(self, self.at)
            self.at = None

    def expired(self) -> None:
        """Ring: the time has come, unless another that was due with it has put it off."""
        if self.at is not None:
            self.at = None
            self.ring()
