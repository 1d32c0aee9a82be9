"""Which topic gets how many of the calls: that of rank r, of which 1 is the hottest, gets 1/r^s parts (Zipf's law)."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

STEEPEST: Final = 10.0
"""Of the exponents that are allowed; at 2 the hottest topic has most of all calls already."""

MOST_TOPICS: Final = 10**15

_COUNTED: Final = 10_000
"""Ranks that are added up one by one; after that an integral is exact to the last digits."""


@dataclass(frozen=True, slots=True)
class Zipf:
    """The law with the exponent s; at 0 all topics are alike."""

    exponent: float

    def __str__(self) -> str:
        return f"zipf:{self.exponent:g}" if self.exponent else "uniform"

    @classmethod
    def parse(cls, text: str) -> Zipf:
        """Read `zipf:1.1` or `uniform`. Raises ValueError."""
        if text == "uniform":
            return cls(0.0)
        match = re.fullmatch(r"zipf:(\d{1,3}(?:\.\d{1,12})?)", text, re.ASCII)
        if match is None or float(match[1]) > STEEPEST:
            raise ValueError(f"{text!r} is neither 'uniform' nor 'zipf:S' with an S from 0 to {STEEPEST:g}")
        return cls(float(match[1]))

    def calls(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the calls of `count` topics, of which the first has the rank `first` + 1 and rank 1 has 1."""
        return np.arange(first + 1, first + count + 1, dtype=np.float64) ** -self.exponent

    def total(self, topics: int) -> float:
        """Return the sum of the calls of so many topics, so that 1/total is the share of the hottest."""
        s, counted = self.exponent, min(topics, _COUNTED)
        head = float(np.sum(self.calls(0, counted)[::-1]))
        if topics == counted:
            return head
        # Euler and Maclaurin's formula, whose next term is below 1e-17 of the sum.
        a, b = float(counted), float(topics)
        integral = np.log(b / a) if s == 1 else (b ** (1 - s) - a ** (1 - s)) / (1 - s)
        return float(head + integral + (b**-s - a**-s) / 2 + s * (a ** (-s - 1) - b ** (-s - 1)) / 12)

    def fewest(self, share: float) -> int | None:
        """Return of how many topics the hottest has no more than `share` of the calls; None if of no number."""
        numbers = range(1, MOST_TOPICS + 1)
        at = bisect.bisect_left(numbers, True, key=lambda topics: 1 / self.total(topics) <= share)
        return numbers[at] if at < len(numbers) else None


def steepest(topics: int, share: float) -> float | None:
    """Return up to which exponent the hottest of so many topics has no more than `share` of the calls.

    None if even one of equals has more.
    """
    if 1 / topics > share:
        return None
    low, high = 0.0, STEEPEST
    for _ in range(40):
        middle = (low + high) / 2
        if 1 / Zipf(middle).total(topics) > share:
            high = middle
        else:
            low = middle
    return low
