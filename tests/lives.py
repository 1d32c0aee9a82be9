"""The tables of lives that the server is held to."""

from __future__ import annotations

from typing import Final

from workers.calls import states as call
from workers.calls import worker_states
from workers.engine.life import Life
from workers.mesh import states as mesh
from workers.nodes import attempt
from workers.process import slot, supervisor

LIVES: Final[tuple[Life, ...]] = (
    call.LIFE,
    mesh.INBOUND_CALL,
    mesh.LINK,
    attempt.ATTEMPT,
    worker_states.LIFE,
    slot.LIFE,
    supervisor.LIFE,
)
"""In the order in which docs/architecture.md shows them."""
