"""What a worker makes connections to other nodes with, and as whom it does."""

from __future__ import annotations

from dataclasses import dataclass

from skywalker.access.trust import Trust
from workers.calls.own_node import Node
from workers.calls.standing import Standing
from workers.engine.credentials import Credentials
from workers.engine.loop import Loop
from workers.engine.turn import Turn


@dataclass(frozen=True)
class Connector:
    """Of one worker. With `credentials`, it speaks TLS to them."""

    node: Node
    loop: Loop
    turn: Turn
    standing: Standing
    trust: Trust
    credentials: Credentials | None
