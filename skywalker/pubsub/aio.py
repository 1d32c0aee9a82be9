"""skywalker.pubsub for asyncio: the names and the meaning of `skywalker.pubsub`, awaited.

async with await skywalker.pubsub.aio.connect(":61626") as broker:
    async with await broker.subscribe("sys.alert") as alerts:
        async for message in alerts: ...

Tasks of one event loop may share what it offers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from typing import TYPE_CHECKING, Any, Self

from skywalker.clients.requests import milliseconds
from skywalker.clients.settings import CONNECT_TIMEOUT_S, Settings, check_patience
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S
from skywalker.pubsub.aio_channel import Channel
from skywalker.pubsub.ask import Ask
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Message, Text, publication, topic_bytes, topic_text
from skywalker.pubsub.settings import DEFAULT_BROKER, DEFAULT_BUFFER, checked_buffer, settings_of
from skywalker.pubsub.telling import OnGap
from skywalker.wire.pubsub import PUBLISH, SUBSCRIBE, UNSUBSCRIBE

if TYPE_CHECKING:
    import ssl

__all__ = ["Broker", "Message", "Pending", "Subscription", "connect"]


async def connect(
    where: str = DEFAULT_BROKER,
    *,
    tls: ssl.SSLContext | bool | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    timeout: None = None,
) -> Broker:
    """Connect to a node, and return what publishes and subscribes there, for tasks of the running event loop.

    Arguments and errors are those of skywalker.pubsub.connect().
    """
    check_patience(connect_timeout, timeout)
    broker = Broker(settings_of(where, tls))
    try:
        await broker.open(connect_timeout)
    except BaseException:
        await broker.close()
        raise
    return broker


class Pending(Ask):
    """A publish under way, as begin() returns it. Awaiting it is awaiting its result()."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel, code: int, topic: bytes, frame: bytes, timeout: float) -> None:
        super().__init__(code, topic, frame, timeout)
        self._channel = channel

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        return self.ended

    async def result(self) -> None:
        """Return once the node has acknowledged it. Raises TimedOut, Unreachable or Closed if it has not.

        If the waiting task is cancelled, it is given up: it may take effect, or not.
        """
        await self._channel.wait_until_ended(self)
        if self.error is not None:
            raise self.error

    def __await__(self) -> Generator[Any, None, None]:
        return self.result().__await__()


class Broker:
    """Where programs publish and subscribe. Made by connect(). Close it, or use it in an `async with` statement."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._exchange = Exchange(settings.where)
        self._channel = Channel(settings, self._exchange)
        self._subscriptions: dict[Subscription, None] = {}

    def __repr__(self) -> str:
        state = "closed" if self._channel.is_closed else self._exchange.state
        return f"<skywalker.pubsub.aio.Broker of {self._settings.where}, {state}>"

    async def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        await self._channel.open(timeout)

    async def publish(
        self,
        topic: Text,
        payload: Text,
        *,
        hint: int | None = None,
        compress: bool = False,
        timeout: float = DEFAULT_CONTROL_TIMEOUT_S,
    ) -> None:
        """Give `payload` to whoever is subscribed to `topic`; return once the node has acknowledged that.

        Arguments and errors are those of skywalker.pubsub.Broker.publish().
        """
        await (await self.begin(topic, payload, hint=hint, compress=compress, timeout=timeout)).result()

    async def begin(
        self,
        topic: Text,
        payload: Text,
        *,
        hint: int | None = None,
        compress: bool = False,
        timeout: float = DEFAULT_CONTROL_TIMEOUT_S,
    ) -> Pending:
        """Start to publish, and do not wait for the acknowledgement. Raises LocalProtocolError as publish() does."""
        milliseconds(timeout)
        name = topic_bytes(topic)
        frame = publication(name, payload, hint, compress)
        pending = Pending(self._channel, PUBLISH, name, frame, timeout)
        self._channel.ask(pending)
        await self._channel.wait_for_room(pending)
        return pending

    async def subscribe(
        self,
        *topics: Text,
        buffer: int = DEFAULT_BUFFER,
        typed: bool = False,
        on_gap: OnGap | None = None,
        timeout: float = DEFAULT_CONTROL_TIMEOUT_S,
    ) -> Subscription:
        """Return a subscription to these topics, once the node has acknowledged them all.

        While `buffer` messages wait it reads no more. Other arguments and errors are those of
        skywalker.pubsub.Broker.subscribe().
        """
        self._channel.check_open()
        milliseconds(timeout)
        names = [topic_bytes(topic) for topic in topics]
        subscription = Subscription(self._settings, checked_buffer(buffer), typed, on_gap, self._forget)
        self._subscriptions[subscription] = None
        try:
            await subscription.open(names, timeout)
        except BaseException:
            await subscription.close()
            raise
        return subscription

    async def close(self) -> None:
        """End all that is under way, and the subscriptions, with Closed. What is called later raises Closed too."""
        await asyncio.gather(self._channel.close(), *(each.close() for each in self._subscriptions))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _forget(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)


class Subscription(AsyncIterator[Message]):
    """An endless iterator over the messages of some topics. Made by Broker.subscribe(); closed with its broker."""

    def __init__(
        self,
        settings: Settings,
        buffer: int,
        typed: bool,
        on_gap: OnGap | None,
        forget: Callable[[Subscription], None],
    ) -> None:
        self._exchange = Exchange(settings.where, is_subscriber=True, typed=typed, buffer=buffer)
        self._channel = Channel(settings, self._exchange, on_gap)
        self._forget = forget

    async def open(self, topics: list[bytes], timeout: float) -> None:
        """Connect, and listen on these topics. Raises TimedOut or Unreachable."""
        if topics:
            await self._ask(SUBSCRIBE, topics, timeout)
        else:
            await self._channel.open(timeout)

    async def get(self, timeout: float = DEFAULT_TIMEOUT_S) -> Message:
        """Return the next message. A task that is cancelled takes none.

        Raises TimedOut if none comes in time, Unreachable if there is no connection then.
        """
        milliseconds(timeout)
        return await self._channel.message(timeout)

    async def __anext__(self) -> Message:
        """Return the next message, however long that takes. Raises Closed once the subscription is closed."""
        return await self._channel.message(None)

    async def subscribe(self, *topics: Text, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Listen on more topics; return once the node has acknowledged them all.

        Raises TimedOut or Unreachable, and then does not listen on what was not acknowledged.
        """
        milliseconds(timeout)
        await self._ask(SUBSCRIBE, [topic_bytes(topic) for topic in topics], timeout)

    async def unsubscribe(self, *topics: Text, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Listen on these topics no more; return once the node has acknowledged that. What came before can be got.

        Raises TimedOut or Unreachable; it takes effect nevertheless, as soon as it can.
        """
        milliseconds(timeout)
        await self._ask(UNSUBSCRIBE, [topic_bytes(topic) for topic in topics], timeout)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that it listens on."""
        return frozenset(map(topic_text, self._exchange.topics))

    @property
    def gaps(self) -> int:
        """How many times it had to listen anew after its connection was lost, so that messages may have been missed."""
        return self._exchange.gaps

    async def close(self) -> None:
        """End it, and forget the messages that nobody has got. Whoever waits for one gets Closed."""
        await self._channel.close()
        self._forget(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def _ask(self, code: int, topics: list[bytes], timeout: float) -> None:
        pending = [Pending(self._channel, code, topic, self._exchange.frame(code, topic), timeout) for topic in topics]
        self._channel.ask(*pending)
        try:
            for ask in pending:
                await ask.result()
        except BaseException:
            self._channel.abandon(*pending)
            raise
