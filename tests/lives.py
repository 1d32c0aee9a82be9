"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import life as call
from workers.calls import standing
from workers.doors import lives as doors
from workers.engine.life import Life
from workers.mesh import lives as mesh
from workers.nodes import attempt
from workers.process import slot, supervisor

LIVES: Final[tuple[Life, ...]] = (
    call.LIFE,
    mesh.INBOUND_CALL,
    doors.CONNECTION,
    doors.INPUT,
    mesh.LINK,
    attempt.ATTEMPT,
    standing.LIFE,
    slot.LIFE,
    supervisor.LIFE,
)
"""In the order in which docs/architecture.md shows them."""
