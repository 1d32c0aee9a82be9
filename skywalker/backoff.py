"""How long to wait before trying again: exponential, capped, and fully jittered.

With the jitter a thousand clients of one dead node do not come back in step.
"""

from __future__ import annotations

from typing import Final

BASE_S: Final = 0.05
"""Seconds within which the first redial happens: soon enough not to be noticed, spread enough not to be a stampede."""

CAP_S: Final = 2.0
"""Seconds within which every later one happens: a node that is back is found again that soon."""


def delay(failures: int, luck: float, *, cap_s: float = CAP_S) -> float:
    """Return the seconds to wait after so many failures in a row; `luck` is random, from 0 to below 1."""
    # Beyond 2**16 the cap holds for any sensible base, and a float would overflow in the end.
    window: float = min(cap_s, BASE_S * 2 ** min(failures, 16))
    return window * luck
