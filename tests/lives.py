"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import standing
from workers.engine.life import Life
from workers.process import slot, supervisor

LIVES: Final[tuple[Life, ...]] = (standing.LIFE, slot.LIFE, supervisor.LIFE)
"""In the order in which docs/architecture.md shows them."""
