"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.doors.lives import CONNECTION, INPUT
from workers.engine.life import Life
from workers.nodes.attempt import ATTEMPT

LIVES: Final[tuple[Life, ...]] = (CONNECTION, INPUT, ATTEMPT)
"""In the order in which docs/architecture.md shows them."""
