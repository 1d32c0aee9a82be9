"""The connection of an asyncio client of pub/sub, and the tasks that wait for what comes over it."""

from __future__ import annotations

from skywalker.clients.aio.line_driver import LineDriver
from skywalker.pubsub.exchange import Exchange
from skywalker.pubsub.message import Message


class ExchangeDriver(LineDriver[Exchange]):
    """Runs what is asked of one exchange."""

    def take(self) -> Message | None:
        """Return the oldest message that waits, None if there is none. Raises what Exchange.take() does, or Closed."""
        self.check_open()
        try:
            return self.core.take(self._loop.time())
        finally:
            self._act()

    def pass_on(self) -> None:
        """Wake another of those who wait for a message, in the place of one that was and does not take it."""
        self.core.wake()
        self._act()

    def topics(self) -> list[bytes]:
        """Return what the exchange is subscribed to."""
        return self.core.topics
