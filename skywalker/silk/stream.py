"""What becomes known of the members of a cluster, for who listens."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable
from typing import Final

from skywalker.errors import Closed
from skywalker.silk.events import Event

MAX_UNREAD: Final = 10_000
"""Events that wait for who listens; past that it is told that it has missed some."""


class Events:
    """The events from when it was made; iterate over it with `async for`. Ends when the node is closed."""

    def __init__(self, forget: Callable[[Events], None]) -> None:
        self._forget = forget
        self._events: collections.deque[Event] = collections.deque()
        self._news = asyncio.Event()
        self._over = False
        self._lagged = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        """Return the next event. Raises Closed if there were more than could be kept."""
        while not self._events:
            if self._lagged:
                raise Closed(f"more than {MAX_UNREAD} events were not read: look at the members, and listen anew")
            if self._over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._events.popleft()

    def close(self) -> None:
        """Listen no more; what has come can still be read."""
        self._over = True
        self._forget(self)
        self._news.set()

    def tell(self, event: Event) -> None:
        """Take in the next event."""
        if len(self._events) >= MAX_UNREAD:
            self._lagged = True
            self.close()
        else:
            self._events.append(event)
            self._news.set()
