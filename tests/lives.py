"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import life as call
from workers.engine.life import Life
from workers.mesh import lives

LIVES: Final[tuple[Life, ...]] = (call.LIFE, lives.INBOUND_CALL, lives.LINK)
"""In the order in which docs/architecture.md shows them."""
