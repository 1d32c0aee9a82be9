"""An input read as numbers and bytes, from its front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """What is left of an input. One that is used up goes on as zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end."""
        self._at += size
        return self._data[self._at - size : self._at]

    def byte(self) -> int:
        """Return a number below 256."""
        return (self.take(1) or b"\0")[0]

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of up to 256."""
        return choices[self.byte() % len(choices)]

    def text(self) -> bytes:
        """Return up to 255 bytes, whose number comes first."""
        return self.take(self.byte())

    def rest(self) -> bytes:
        """Return all that is left."""
        return self.take(len(self._data))
