"""Both colours of pub/sub client behind one blocking face, so that one suite drives them both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skywalker import pubsub
from skywalker.pubsub import Message, aio
from tests.clients.driving import Loop


class AioPending:
    """A publish under way in an event loop."""

    def __init__(self, loop: Loop, pending: aio.Pending) -> None:
        self._loop = loop
        self.pending = pending

    def done(self) -> bool:
        return self.pending.done()

    def result(self) -> None:
        self._loop.run(self.pending.result())


class AioSubscription:
    """An asyncio subscription with the methods of a blocking one."""

    def __init__(self, loop: Loop, subscription: aio.Subscription) -> None:
        self._loop = loop
        self.subscription = subscription

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.subscription, name)
        return lambda *args, **kwargs: self._loop.run(method(*args, **kwargs))

    @property
    def topics(self) -> frozenset[str]:
        return self.subscription.topics

    @property
    def gaps(self) -> int:
        return self.subscription.gaps

    def __iter__(self) -> AioSubscription:
        return self

    def __next__(self) -> Message:
        return self._loop.run(anext(self.subscription))

    def __enter__(self) -> AioSubscription:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class AioBroker:
    """An asyncio broker with the methods of a blocking one."""

    def __init__(self, loop: Loop, broker: aio.Broker) -> None:
        self._loop = loop
        self.broker = broker

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.broker, name)
        return lambda *args, **kwargs: self._loop.run(method(*args, **kwargs))

    def begin(self, *args: Any, **kwargs: Any) -> AioPending:
        return AioPending(self._loop, self._loop.run(self.broker.begin(*args, **kwargs)))

    def subscribe(self, *args: Any, **kwargs: Any) -> AioSubscription:
        return AioSubscription(self._loop, self._loop.run(self.broker.subscribe(*args, **kwargs)))


def waiters(messages: Any) -> int:
    """Return how many threads or tasks wait for a message."""
    if isinstance(messages, AioSubscription):
        return len(messages.subscription._exchange.arrivals)
    driver = messages._driver
    return len(driver._sleepers) + (driver._leader is not None)


def unread(messages: Any) -> int:
    """Return how many messages wait to be got."""
    if isinstance(messages, AioSubscription):
        messages = messages.subscription
    return int(messages._exchange.waiting)


Broker = Any
"""A skywalker.pubsub.Broker, or an AioBroker, which has the same methods."""

Connect = Callable[..., Broker]


def blocking_connect(where: str, **options: Any) -> Broker:
    return pubsub.connect(where, **options)


def aio_connect(loop: Loop) -> Connect:
    """Return a connect() for tasks of `loop`."""
    return lambda where, **options: AioBroker(loop, loop.run(aio.connect(where, **options)))
