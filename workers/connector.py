"""What a worker makes connections to other nodes with, and as whom it does."""

from __future__ import annotations

from dataclasses import dataclass

from skywalker.access.trust import Trust
from workers.credentials import Credentials
from workers.loop import Loop
from workers.node import Node
from workers.standing import Standing
from workers.turn import Turn


@dataclass(frozen=True)
class Connector:
    """Of one worker. With `credentials`, it speaks TLS to them."""

    node: Node
    loop: Loop
    turn: Turn
    standing: Standing
    trust: Trust
    credentials: Credentials | None
