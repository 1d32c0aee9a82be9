"""skywalker.pubsub: what is published to a topic reaches whoever is subscribed to it at that moment.

    with skywalker.pubsub.connect(":61626") as broker:
        with broker.subscribe("sys.alert") as alerts:
            broker.publish("sys.alert", "It's broke.")
            message = alerts.get()        # message.topic, message.payload

Names load when first used; `skywalker.pubsub.aio` has the same names for asyncio.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from skywalker.clients.blocking.driver import Pending
    from skywalker.pubsub import aio
    from skywalker.pubsub.blocking.broker import Broker, connect
    from skywalker.pubsub.blocking.subscription import Subscription
    from skywalker.pubsub.message import Message

__all__ = ["Broker", "Message", "Pending", "Subscription", "aio", "connect"]

_HOMES: Final = {
    "Broker": "skywalker.pubsub.blocking.broker",
    "Message": "skywalker.pubsub.message",
    "Pending": "skywalker.clients.blocking.driver",
    "Subscription": "skywalker.pubsub.blocking.subscription",
    "connect": "skywalker.pubsub.blocking.broker",
}


def __getattr__(name: str) -> Any:
    if name == "aio":
        return importlib.import_module("skywalker.pubsub.aio")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
