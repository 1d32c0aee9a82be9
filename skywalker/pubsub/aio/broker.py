"""What publishes and subscribes at a node.

Publishing has a connection of its own, over which only acknowledgements come, and so has every subscription.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from skywalker.clients.aio.driver import Pending
from skywalker.clients.news import Herald, OnConnect, OnDisconnect, OnGap, pubsub_log
from skywalker.clients.requests import milliseconds
from skywalker.clients.settings import CONNECT_TIMEOUT_S, Settings, check_patience
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S
from skywalker.pubsub.aio.driver import ExchangeDriver
from skywalker.pubsub.aio.subscription import Subscription
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Text, publication, topic_bytes
from skywalker.pubsub.settings import DEFAULT_BROKER, DEFAULT_BUFFER, checked_buffer, settings_of

if TYPE_CHECKING:
    import ssl


async def connect(
    where: str = DEFAULT_BROKER,
    *,
    tls: ssl.SSLContext | bool | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    on_connect: OnConnect | None = None,
    on_disconnect: OnDisconnect | None = None,
    timeout: None = None,
) -> Broker:
    """Connect to a node, and return what publishes and subscribes there, for tasks of the running event loop.

    `where` is "host:port", "host", ":port", or several with commas between them, of which any that answers will do;
    with "skywalkers://" before them, or with `tls`, by TLS, as skywalker.connect() has it.
    `on_connect` is called with the address whenever there is a connection to publish over, and `on_disconnect` with
    the address and the cause when it is lost; what becomes of a subscription's own is told to its `on_gap`.
    Raises Unreachable if none does within `connect_timeout` seconds, LocalProtocolError for what is no address.
    """
    check_patience(connect_timeout, timeout)
    broker = Broker(settings_of(where, tls), Herald(on_connect, on_disconnect, log=pubsub_log))
    try:
        await broker.open(connect_timeout)
    except BaseException:
        await broker.close()
        raise
    return broker


class Broker:
    """Where programs publish and subscribe. Made by connect(). Close it, or use it in an `async with` statement."""

    def __init__(self, settings: Settings, herald: Herald) -> None:
        self._settings = settings
        self._driver = ExchangeDriver(lambda: Exchange(settings.where), settings, herald)
        self._subscriptions: dict[Subscription, None] = {}  # each use of it is one step, which no thread sees half of

    def __repr__(self) -> str:
        state = "closed" if self._driver.is_closed else self._driver.core.state
        return f"<skywalker.pubsub.aio.Broker of {self._settings.where}, {state}>"

    async def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        await self._driver.open(self._driver.now() + timeout)

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

        `hint`, from 0 to 255, says of what type it is; `compress` sends it compressed if that is shorter. A str is
        sent as UTF-8. Raises TimedOut, or Unreachable if there was no connection, after which it may have taken
        effect or not; LocalProtocolError for a topic over 255 bytes or a payload over 65,535, and nothing was sent.
        """
        call = await self.begin(topic, payload, hint=hint, compress=compress, timeout=timeout)
        await call.result()

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
        return await self._driver.begin("publish", (name, publication(name, payload, hint, compress)), timeout)

    async def subscribe(
        self,
        *topics: Text,
        buffer: int = DEFAULT_BUFFER,
        typed: bool = False,
        on_gap: OnGap | None = None,
        timeout: float = DEFAULT_CONTROL_TIMEOUT_S,
    ) -> Subscription:
        """Return a subscription to these topics, once the node has acknowledged them all.

        It has a connection of its own. While `buffer` messages wait it reads no more.
        With `typed` messages have the hints of their publishers, which not every
        broker of this dialect knows. `on_gap` is called with a text when the connection was lost and there is
        another: messages may have been missed.
        Raises TimedOut, Unreachable, or LocalProtocolError.
        """
        self._driver.check_open()
        milliseconds(timeout)
        names = [topic_bytes(topic) for topic in topics]
        subscription = Subscription(self._settings, checked_buffer(buffer), typed, on_gap, self._forget)
        self._subscriptions[subscription] = None
        try:
            self._driver.check_open()  # close() may not have seen it
            await subscription.open(names, timeout)
        except BaseException:
            await subscription.close()
            raise
        return subscription

    async def close(self) -> None:
        """End all that is under way, and the subscriptions, with Closed. What is called later raises Closed too."""
        await self._driver.close()
        for subscription in [*self._subscriptions]:
            await subscription.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def _forget(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)
