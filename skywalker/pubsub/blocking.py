"""The blocking client of pub/sub: threads share what it offers, and no thread is there but the callers' own.

Publishing has a connection of its own, over which only acknowledgements come, and so has every subscription.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from skywalker.clients.requests import milliseconds
from skywalker.clients.settings import CONNECT_TIMEOUT_S, Settings, check_patience
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S
from skywalker.pubsub.ask import Ask
from skywalker.pubsub.channel import FOREVER, Channel
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Message, Text, publication, topic_bytes, topic_text
from skywalker.pubsub.settings import DEFAULT_BROKER, settings_of
from skywalker.pubsub.telling import OnGap
from skywalker.wire.pubsub import PUBLISH, SUBSCRIBE, UNSUBSCRIBE

if TYPE_CHECKING:
    import ssl


def connect(
    where: str = DEFAULT_BROKER,
    *,
    tls: ssl.SSLContext | bool | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    timeout: None = None,
) -> Broker:
    """Connect to a node, and return what publishes and subscribes there; threads may share it.

    `where` is "host:port", "host", ":port", or several with commas between them, of which any that answers will do;
    with "skywalkers://" before them, or with `tls`, by TLS, as skywalker.connect() has it.
    Raises Unreachable if none does within `connect_timeout` seconds, LocalProtocolError for what is no address.
    """
    check_patience(connect_timeout, timeout)
    broker = Broker(settings_of(where, tls))
    try:
        broker.open(connect_timeout)
    except BaseException:
        broker.close()
        raise
    return broker


class Pending(Ask):
    """A publish under way, as begin() returns it."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel, code: int, topic: bytes, frame: bytes, timeout: float) -> None:
        super().__init__(code, topic, frame, timeout)
        self._channel = channel

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        if not self.ended:
            self._channel.wait(lambda: self.ended, 0.0)
        return self.ended

    def result(self) -> None:
        """Return once the node has acknowledged it. Raises TimedOut, Unreachable or Closed if it has not.

        An exception that interrupts the waiting, such as KeyboardInterrupt, gives it up: it may take effect, or not.
        """
        if not self.ended:
            self._channel.wait_until_ended(self)
        if self.error is not None:
            raise self.error


class Broker:
    """Where programs publish and subscribe. Made by connect(). Close it, or use it in a `with` statement."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._exchange = Exchange(settings.where)
        self._channel = Channel(settings, self._exchange)
        self._lock = threading.Lock()
        self._subscriptions: dict[Subscription, None] = {}

    def __repr__(self) -> str:
        state = "closed" if self._channel.is_closed else self._exchange.state
        return f"<skywalker.pubsub.Broker of {self._settings.where}, {state}>"

    def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        self._channel.open(timeout)

    def publish(
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
        self.begin(topic, payload, hint=hint, compress=compress, timeout=timeout).result()

    def begin(
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
        return pending

    def subscribe(
        self,
        *topics: Text,
        typed: bool = False,
        on_gap: OnGap | None = None,
        timeout: float = DEFAULT_CONTROL_TIMEOUT_S,
    ) -> Subscription:
        """Return a subscription to these topics, once the node has acknowledged them all.

        It has a connection of its own. With `typed` messages have the hints of their publishers, which not every
        broker of this dialect knows. `on_gap` is called with a text when the connection was lost and there is
        another: messages may have been missed.
        Raises TimedOut, Unreachable, or LocalProtocolError.
        """
        self._channel.check_open()
        milliseconds(timeout)
        names = [topic_bytes(topic) for topic in topics]
        subscription = Subscription(self._settings, typed, on_gap, self._forget)
        with self._lock:
            self._subscriptions[subscription] = None
        try:
            self._channel.check_open()  # close() may not have seen it
            subscription.open(names, timeout)
        except BaseException:
            subscription.close()
            raise
        return subscription

    def close(self) -> None:
        """End all that is under way, and the subscriptions, with Closed. What is called later raises Closed too."""
        self._channel.close()
        with self._lock:
            subscriptions = [*self._subscriptions]
        for subscription in subscriptions:
            subscription.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _forget(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions.pop(subscription, None)


class Subscription(Iterator[Message]):
    """An endless iterator over the messages of some topics. Made by Broker.subscribe(); closed with its broker."""

    def __init__(
        self,
        settings: Settings,
        typed: bool,
        on_gap: OnGap | None,
        forget: Callable[[Subscription], None],
    ) -> None:
        self._exchange = Exchange(settings.where, is_subscriber=True, typed=typed)
        self._channel = Channel(settings, self._exchange, on_gap)
        self._forget = forget

    def open(self, topics: list[bytes], timeout: float) -> None:
        """Connect, and listen on these topics. Raises TimedOut or Unreachable."""
        if topics:
            self._ask(SUBSCRIBE, topics, timeout)
        else:
            self._channel.open(timeout)

    def get(self, timeout: float = DEFAULT_TIMEOUT_S) -> Message:
        """Return the next message.

        Raises TimedOut if none comes in time, Unreachable if there is no connection then.
        """
        milliseconds(timeout)
        return self._get(timeout)

    def __next__(self) -> Message:
        """Return the next message, however long that takes. Raises Closed once the subscription is closed."""
        return self._get(FOREVER)

    def _get(self, timeout: float) -> Message:
        exchange, channel = self._exchange, self._channel
        until = time.monotonic() + timeout
        while True:
            message = channel.take()
            if message is not None:
                return message
            if not channel.wait(lambda: exchange.waiting > 0, until):
                raise exchange.nothing_came(timeout)

    def subscribe(self, *topics: Text, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Listen on more topics; return once the node has acknowledged them all.

        Raises TimedOut or Unreachable, and then does not listen on what was not acknowledged.
        """
        milliseconds(timeout)
        self._ask(SUBSCRIBE, [topic_bytes(topic) for topic in topics], timeout)

    def unsubscribe(self, *topics: Text, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Listen on these topics no more; return once the node has acknowledged that. What came before can be got.

        Raises TimedOut or Unreachable; it takes effect nevertheless, as soon as it can.
        """
        milliseconds(timeout)
        self._ask(UNSUBSCRIBE, [topic_bytes(topic) for topic in topics], timeout)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that it listens on."""
        with self._channel.lock:
            return frozenset(map(topic_text, self._exchange.topics))

    @property
    def gaps(self) -> int:
        """How many times it had to listen anew after its connection was lost, so that messages may have been missed."""
        return self._exchange.gaps

    def close(self) -> None:
        """End it, and forget the messages that nobody has got. Whoever waits for one gets Closed."""
        self._channel.close()
        self._forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(self, code: int, topics: list[bytes], timeout: float) -> None:
        pending = [Pending(self._channel, code, topic, self._exchange.frame(code, topic), timeout) for topic in topics]
        try:
            self._channel.ask(*pending)
            for ask in pending:
                ask.result()
        except BaseException:
            self._channel.abandon(*pending)
            raise
