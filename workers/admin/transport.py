"""The connections of the admin server: bounded in number, and in the time that one may take for nothing."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 64
"""At a time. For one more, the one that has asked for nothing longest is closed; if all get answers, the new one is."""

IDLE_S: Final = 5.0
"""Seconds for a request to arrive whole, and until the next one begins."""

UNREAD_S: Final = 5.0
"""Seconds for what is written to be read."""


class Bounded(H11Protocol):
    """One of them."""

    _timer: asyncio.TimerHandle | None = None  # until its request must be there
    _unread: asyncio.TimerHandle | None = None  # until what is written must be read
    idle_since = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether no answer is on its way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # to be told whenever something is not read at once
        self._expect()
        if len(self.connections) > MAX_CONNECTIONS:
            others: list[Any] = [each for each in self.connections if each is not self]
            idle = [each for each in others if each.is_idle]
            least = min(idle, key=lambda each: each.idle_since, default=self)
            least.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._expect()

    def _expect(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.idle_since = self.loop.time()
        self._timer = self.loop.call_later(IDLE_S, self._late)

    def _late(self) -> None:
        if self.is_idle:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
