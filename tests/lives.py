"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.engine.life import Life

LIVES: Final[tuple[Life, ...]] = ()
"""In the order in which docs/architecture.md shows them."""
