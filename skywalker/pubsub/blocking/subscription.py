# Made by 'make faces' from skywalker/pubsub/aio/subscription.py; do not edit.

"""Messages of some topics, as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

from skywalker.clients.requests import milliseconds
from skywalker.clients.settings import Settings
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S
from skywalker.pubsub.blocking.channel import Channel, Pending
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Message, Text, topic_bytes, topic_text
from skywalker.pubsub.telling import Herald, OnGap
from skywalker.wire.pubsub import SUBSCRIBE, UNSUBSCRIBE


class Subscription(Iterator[Message]):
    """An endless iterator over the messages of some topics. Made by Broker.subscribe(); closed with its broker."""

    def __init__(
        self,
        settings: Settings,
        buffer: int,
        typed: bool,
        on_gap: OnGap | None,
        forget: Callable[[Subscription], None],
    ) -> None:
        self._where = settings.where
        self._exchange = Exchange(settings.where, is_subscriber=True, typed=typed, buffer=buffer)
        self._channel = Channel(settings, self._exchange, Herald(on_gap=on_gap))
        self._forget = forget

    def __repr__(self) -> str:
        state = "closed" if self._channel.is_closed else self._exchange.state
        return f"<skywalker.pubsub.Subscription at {self._where}, {state}>"

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
        return self._channel.message(timeout)

    def __next__(self) -> Message:
        """Return the next message, however long that takes. Raises Closed once the subscription is closed."""
        return self._channel.message()

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
