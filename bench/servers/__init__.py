"""The servers that are measured side by side: how each is started, and what is said to it.

A peer is a kind of server, with the scripts that a pair follows on it: skywalker, nats, redis, zeromq, echo (echo.c).
core serves with nothing but the core; pubsub has what publishers and subscribers say to some of them, usage
what any of them takes of its machine.
"""

from __future__ import annotations

from typing import Final

from bench.servers import echo, nats, redis, skywalker, zeromq
from bench.servers.peer import Peer, Running

__all__ = ["SERVERS", "Peer", "Running"]

SERVERS: Final = {
    peer.name: peer for peer in (skywalker.PEER, nats.PEER, redis.PEER, zeromq.PEER, echo.PEER)
}  # in the order in which they are shown
