"""skywalker: programs meet on topics. One side sends a value, the other receives it; nothing is stored.

    junction = skywalker.connect("host:3443")
    junction.send("jobs", {"id": 1})      # on one side
    junction.recv("jobs")                 # on the other

A cluster is named by some of its nodes, "a:3443,b:3443", or by what knows them, such as
"silk://a:3444,b:3444", "dns://name:3443" or "consul://host:8500/skywalker".

Names load when first used, so that a program pays for what it uses: the blocking client
loads neither asyncio nor the server. `skywalker.aio` has the same names for asyncio, and
`skywalker.pubsub` is for publishing and subscribing, `skywalker.silk` for dialogs without a node.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from skywalker import aio, pubsub, silk
    from skywalker.clients.blocking.client import Client, connect
    from skywalker.clients.blocking.driver import Pending
    from skywalker.clients.blocking.junction import Junction, LocalJunction
    from skywalker.clients.blocking.sharded import Sharded
    from skywalker.errors import (
        BadArity,
        BadFrame,
        BadId,
        BadTimeout,
        BadTopic,
        Busy,
        Cancelled,
        Closed,
        ConfigError,
        DiscoveryError,
        Draining,
        Forbidden,
        HandlerFailed,
        Internal,
        LocalProtocolError,
        NobodyHandles,
        NoReply,
        NoSuchNode,
        NotJoined,
        OutcomeUnknown,
        RemoteProtocolError,
        RequestError,
        ReservedValue,
        SkywalkerError,
        TimedOut,
        TooLarge,
        Unauthorized,
        UnknownMethod,
        Unreachable,
    )

__version__: Final = "0.1.0"

__all__ = [
    "BadArity",
    "BadFrame",
    "BadId",
    "BadTimeout",
    "BadTopic",
    "Busy",
    "Cancelled",
    "Client",
    "Closed",
    "ConfigError",
    "DiscoveryError",
    "Draining",
    "Forbidden",
    "HandlerFailed",
    "Internal",
    "Junction",
    "LocalJunction",
    "LocalProtocolError",
    "NoReply",
    "NoSuchNode",
    "NobodyHandles",
    "NotJoined",
    "OutcomeUnknown",
    "Pending",
    "RemoteProtocolError",
    "RequestError",
    "ReservedValue",
    "Sharded",
    "SkywalkerError",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "UnknownMethod",
    "Unreachable",
    "__version__",
    "aio",
    "connect",
    "embedded",
    "pubsub",
    "silk",
]

_HOMES: Final = {
    "skywalker.clients.blocking.client": ("Client", "connect"),
    "skywalker.clients.blocking.driver": ("Pending",),
    "skywalker.clients.blocking.junction": ("Junction", "LocalJunction"),
    "skywalker.clients.blocking.sharded": ("Sharded",),
    "skywalker.embedding": ("embedded",),
}


def __getattr__(name: str) -> Any:
    if name in ("aio", "pubsub", "silk"):
        return importlib.import_module(f"skywalker.{name}")
    if name in __all__:
        home = next((module for module, names in _HOMES.items() if name in names), "skywalker.errors")
        value = getattr(importlib.import_module(home), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
