"""How even shares are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Balance:
    """Shares against a fair one, which is 1: the mean of all."""

    busiest: float
    p99: float
    p50: float
    least: float

    @classmethod
    def of(cls, shares: NDArray[Any]) -> Self:
        """Return the balance of shares, in whatever unit they are; at least one is above 0."""
        of_fair = shares / shares.mean()
        p99, p50 = np.percentile(of_fair, [99, 50])
        return cls(float(of_fair.max()), float(p99), float(p50), float(of_fair.min()))
