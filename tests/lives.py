"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import life as call
from workers.engine.life import Life

LIVES: Final[tuple[Life, ...]] = (call.LIFE,)
"""In the order in which docs/architecture.md shows them."""
