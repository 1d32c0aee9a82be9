"""skywalker.pubsub for asyncio: the names and the meaning of `skywalker.pubsub`, awaited.

async with await skywalker.pubsub.aio.connect(":61626") as broker:
    async with await broker.subscribe("sys.alert") as alerts:
        async for message in alerts: ...

Tasks of one event loop may share what it offers.
"""

from __future__ import annotations

from skywalker.clients.aio.driver import Pending
from skywalker.pubsub.aio.broker import Broker, connect
from skywalker.pubsub.aio.subscription import Subscription
from skywalker.pubsub.message import Message

__all__ = ["Broker", "Message", "Pending", "Subscription", "connect"]
