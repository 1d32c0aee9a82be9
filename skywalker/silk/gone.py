"""Who has left, for as long as others who have not heard of it may still tell of them."""

from __future__ import annotations

from typing import Final

from skywalker.silk import pace

MAX_REMEMBERED: Final = 2048
"""As many as a cluster has; past that, those who left first are forgotten."""


class Gone:
    """All of them, by id."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def has_left(self, id: str, now: float) -> None:
        """This one leaves now."""
        self.is_back(id)
        self._at[id] = now
        if len(self._at) > MAX_REMEMBERED:
            self.is_back(next(iter(self._at)))

    def is_back(self, id: str) -> None:
        """This one is there after all."""
        self._at.pop(id, None)

    def is_gone(self, id: str, now: float) -> bool:
        """Whether this one has left a short while ago."""
        return now - self._at.get(id, now - pace.LEFT_S) < pace.LEFT_S
