"""Messages of some topics, as they come."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Self

from skywalker.clients.aio.driver import Pending
from skywalker.clients.call import PubSubKind
from skywalker.clients.news import Herald, OnGap, pubsub_log
from skywalker.clients.requests import MAX_TIMEOUT_S, milliseconds
from skywalker.clients.settings import Settings
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S
from skywalker.pubsub.aio.driver import ExchangeDriver
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Message, Text, topic_bytes, topic_text


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
        self._where = settings.where
        self._driver = ExchangeDriver(
            lambda: Exchange(settings.where, is_subscriber=True, typed=typed, buffer=buffer),
            settings,
            Herald(on_gap=on_gap, log=pubsub_log),
        )
        self._exchange = self._driver.core
        self._forget = forget

    def __repr__(self) -> str:
        state = "closed" if self._driver.is_closed else self._exchange.state
        return f"<skywalker.pubsub.aio.Subscription at {self._where}, {state}>"

    async def open(self, topics: list[bytes], timeout: float) -> None:
        """Connect, and listen on these topics. Raises TimedOut or Unreachable."""
        if topics:
            await self._ask("subscribe", topics, timeout)
        else:
            await self._driver.open(self._driver.now() + timeout)

    async def get(self, timeout: float = DEFAULT_TIMEOUT_S) -> Message:
        """Return the next message.

        A task that is cancelled takes none.
        Raises TimedOut if none comes in time, Unreachable if there is no connection then.
        """
        milliseconds(timeout)
        return await self._next(timeout)

    async def __anext__(self) -> Message:
        """Return the next message, however long that takes. Raises Closed once the subscription is closed."""
        return await self._next(math.inf)

    async def _next(self, timeout: float) -> Message:
        driver = self._driver
        until = driver.now() + timeout
        while True:
            message = driver.take()
            if message is not None:
                return message
            arrival = driver.issue("message", (), MAX_TIMEOUT_S)
            try:
                await driver.wait(arrival, until)
                is_late = not arrival.done()
            except BaseException:
                driver.abandon(arrival)
                driver.pass_on()
                raise
            if is_late:
                driver.abandon(arrival)
                raise self._exchange.nothing_came(timeout)

    async def subscribe(self, *topics: Text, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Listen on more topics; return once the node has acknowledged them all.

        Raises TimedOut or Unreachable, and then does not listen on what was not acknowledged.
        """
        milliseconds(timeout)
        await self._ask("subscribe", map(topic_bytes, topics), timeout)

    async def unsubscribe(self, *topics: Text, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Listen on these topics no more; return once the node has acknowledged that. What came before can be got.

        Raises TimedOut or Unreachable; it takes effect nevertheless, as soon as it can.
        """
        milliseconds(timeout)
        await self._ask("unsubscribe", map(topic_bytes, topics), timeout)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that it listens on."""
        return frozenset(map(topic_text, self._driver.topics()))

    @property
    def gaps(self) -> int:
        """How many times it had to listen anew after its connection was lost, so that messages may have been missed."""
        return self._exchange.gaps

    async def close(self) -> None:
        """End it, and forget the messages that nobody has got. Whoever waits for one gets Closed."""
        await self._driver.close()
        self._forget(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def _ask(self, kind: PubSubKind, topics: Iterable[bytes], timeout: float) -> None:
        driver = self._driver
        names = [*topics]
        until = driver.now() + timeout
        calls: list[Pending] = []
        try:
            for name in names:
                call = await driver.begin(kind, (name,), max(0.0, round(until - driver.now(), 3)))
                calls.append(call)
                if call.error is not None:
                    raise call.error
            for call in calls:
                await call.result()
        except BaseException:
            for call in calls:
                driver.abandon(call)
            raise
