"""skywalker.silk: programs that talk to each other with nobody between them, in JSON over ZeroMQ.

    async with silk.Node() as node:
        await node.join("10.0.0.7:3444")
        size = await node.request_any("resize", {"file": "a.png", "width": 200})

Names load when first used; `skywalker.silk.blocking` has a Node for programs without asyncio. All of it needs
pyzmq, which skywalker's extra `silk` brings.

    for programs      node, blocking; asking is for who is no member; keys, endpoints
    at work           hub is what goes on in a node, on sockets; service runs its handlers; stream is who listens;
                      machine is what they ask of the machine
    pure              info is what a node says of itself, membership who is in the cluster: its peers, doubts about
                      them, claims to be one of them, visits to who is no member, at what pace
                      requests are what this node asks, answers what it has answered
                      an outbox has what all of these want done; events are what becomes known
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from skywalker.silk import blocking
    from skywalker.silk.asking import ask
    from skywalker.silk.events import Changed, Event, Failed, Joined, Left, Recovered, Suspected
    from skywalker.silk.info import Handling, NodeInfo
    from skywalker.silk.keys import Keys
    from skywalker.silk.node import Node, Reply
    from skywalker.silk.stream import Events

__all__ = [
    "Changed",
    "Event",
    "Events",
    "Failed",
    "Handling",
    "Joined",
    "Keys",
    "Left",
    "Node",
    "NodeInfo",
    "Recovered",
    "Reply",
    "Suspected",
    "ask",
    "blocking",
]

_HOMES: Final = {
    "skywalker.silk.events": ("Changed", "Event", "Failed", "Joined", "Left", "Recovered", "Suspected"),
    "skywalker.silk.asking": ("ask",),
    "skywalker.silk.stream": ("Events",),
    "skywalker.silk.info": ("Handling", "NodeInfo"),
    "skywalker.silk.keys": ("Keys",),
    "skywalker.silk.node": ("Node", "Reply"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name == "blocking":
            return importlib.import_module("skywalker.silk.blocking")
        home = next(module for module, names in _HOMES.items() if name in names)
        value = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "zmq":
            raise
        from skywalker import extras

        raise ImportError(f"Silk needs ZeroMQ for Python: {extras.command_for('silk')}", name="zmq") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
