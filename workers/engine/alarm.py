"""A deadline of a connection rather than of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workers.engine.turn import Turn


class Alarm:
    """Calls somebody when the time has come, unless it is put off before.

    While it is not set it refers to nobody: whoever has it, and is called by it, would else refer to itself.
    """

    __slots__ = ("_ring", "at")

    def __init__(self) -> None:
        self._ring: Callable[[], None] | None = None
        self.at: float | None = None

    def set(self, turn: Turn, at: float, ring: Callable[[], None]) -> None:
        """Call `ring` at that time and at no other."""
        self.off(turn)
        self.at, self._ring = at, ring
        turn.deadlines.add(self, at)

    def off(self, turn: Turn) -> None:
        """Do not ring."""
        if self.at is not None:
            turn.deadlines.discard(self, self.at)
            self.at = self._ring = None

    def expired(self) -> None:
        """Ring: the time has come, unless another that was due with it has put it off."""
        ring = self._ring
        if ring is not None:
            self.at = self._ring = None
            ring()
