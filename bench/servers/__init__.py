"""The servers that are measured side by side: how each is started, and what a pair says to it."""

from __future__ import annotations

from typing import Final

from bench.servers import echo, nats, redis, skywalker, zeromq
from bench.servers.peer import Peer, Running

__all__ = ["SERVERS", "Peer", "Running", "find"]

SERVERS: Final = {
    peer.name: peer for peer in (skywalker.PEER, nats.PEER, redis.PEER, zeromq.PEER, echo.PEER)
}  # in the order in which they are shown


def find(name: str) -> Peer:
    """Return the server of a name. Raises KeyError."""
    return SERVERS[name]
