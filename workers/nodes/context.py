"""What a worker makes and takes the links to other nodes with, and as whom it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skywalker.access.trust import Trust
from skywalker.members import Place
from workers.calls.own_node import OwnNode
from workers.calls.owners import Owners
from workers.calls.rebalance import Rebalance
from workers.calls.worker_states import Standing
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop, Turn
from workers.engine.machine import Machine
from workers.mesh.links import Links
from workers.mesh.readiness import ReadinessBarrier
from workers.stats.log import Log


@dataclass(frozen=True)
class PeerContext:
    """Of one worker. With `credentials`, it speaks TLS to them.

    `have_visited` has those of this node that are being replaced go to a new worker, and then calls what it is given.
    """

    node: OwnNode
    machine: Machine
    loop: Loop
    turn: Turn
    log: Log
    standing: Standing
    owners: Owners
    links: Links
    barrier: ReadinessBarrier
    rebalance: Rebalance
    have_visited: Callable[[Place, str, Callable[[], None]], None]
    trust: Trust
    idle_s: float
    """After which a link that nobody uses is ended."""
    max_links: int
    """If the workers of other nodes are more than that, some are linked through siblings; not if it is 0."""
    credentials: Credentials | None
