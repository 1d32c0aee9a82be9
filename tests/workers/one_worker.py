"""The parts of a worker without its process, moved by hand: a test says when a turn is, and how late it is."""

from __future__ import annotations

import socket
import time

from skywalker.limits import Limits
from tests.workers.wire_client import WireClient
from workers.identity import Identity
from workers.log import Log
from workers.loop import Loop
from workers.node import Node
from workers.router import Router
from workers.session import Session
from workers.turn import Turn


class OneWorker:
    """A worker that owns all topics."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.loop = Loop()
        node = Node(Identity.new(), "test", "0", 0, 1)
        self.router = Router(node, limits or Limits(), self.loop, Turn(time.monotonic()), Log())

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self.router.connections):
            connection.close("the test is over")

    def connect(self) -> WireClient:
        """Return a client of the worker."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.router.opened(Session(theirs, "test", self.router))
        return WireClient(ours)

    def turn(self, later: float = 0.0) -> None:
        """Do what there is to do, as if it were `later` by so many seconds."""
        turn = self.router.turn
        turn.begin(time.monotonic() + later)
        turn.end()
        while self.loop.turn(turn, patient=False):
            pass

    def holds(self) -> dict[str, int]:
        """Return the size of everything that grows with calls."""
        router = self.router
        return {
            "calls": router.calls_held,
            "bytes": router.bytes_held,
            "topics": len(router.junction),
            "deadlines": len(router.turn.deadlines),
        }
