"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import life as call
from workers.calls import standing
from workers.engine.life import Life
from workers.mesh import lives as mesh
from workers.process import slot, supervisor

LIVES: Final[tuple[Life, ...]] = (
    call.LIFE,
    mesh.INBOUND_CALL,
    mesh.LINK,
    standing.LIFE,
    slot.LIFE,
    supervisor.LIFE,
)
"""In the order in which docs/architecture.md shows them."""
