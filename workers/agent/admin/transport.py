"""The connections of the admin server: bounded in number, and in the time that one may take for nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from workers.agent.admin.tls import Secured

MAX_CONNECTIONS: Final = 64
"""At a time. For one more, another is closed: one that asks for nothing, or if there is none, one that gets an answer,
which then nearly always listens to events. Of those it is from the address that has most, and has been so longest."""

IDLE_S: Final = 5.0
"""Seconds for hands to be shaken and a request to arrive whole, and until the next one begins."""

UNREAD_S: Final = 5.0
"""Seconds for what is written to be read."""


NAMES: Final = "names"
"""In the `state` of a request: the names in its client's certificate."""


class Bounded(H11Protocol):
    """One of them. With `tls`, which returns how to speak it, nothing else is understood."""

    _timer: asyncio.TimerHandle | None = None  # until its request must be there
    _unread: asyncio.TimerHandle | None = None  # until what is written must be read
    _secured: Secured | None = None
    idle_since = 0.0  # when it last became so

    def __init__(self, *arguments: Any, tls: Callable[[], ssl.SSLContext] | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._tls = tls

    @property
    def host(self) -> str:
        """Where it comes from."""
        return self.client[0] if self.client else ""

    @property
    def is_idle(self) -> bool:
        """Whether no answer is on its way."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if self._tls is not None:
            transport = self._secured = Secured(transport, self._tls())
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # to be told whenever something is not read at once
        self._expect()
        self._make_room()

    def _make_room(self) -> None:
        # One that was closed in this turn of the loop is still among them.
        there: list[Any] = [each for each in self.connections if not each.transport.is_closing()]
        if len(there) > MAX_CONNECTIONS:
            crowds = Counter(each.host for each in there)
            others = (each for each in there if each is not self)
            least = min(others, key=lambda each: (not each.is_idle, -crowds[each.host], each.idle_since))
            least.transport.abort()

    def data_received(self, data: bytes) -> None:
        secured = self._secured
        if secured is None:
            super().data_received(data)
            return
        try:
            data = secured.received(data)
        except ssl.SSLError:
            secured.close()
            return
        if data:
            # A dict of its own: uvicorn's is that of all connections.
            self.app_state = {NAMES: secured.names}
            super().data_received(data)
        if secured.ended:
            secured.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP. If it is the rest of a request, that has this answer, or the one that began."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # what the app still says goes nowhere
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

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
