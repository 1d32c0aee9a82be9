"""Server-sent events: the state of the node each second, to as many as are let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from workers.admin.samples import Samples
from workers.admin.state import State

MAX_LISTENERS: Final = 32


class Stream:
    """All of them. One that reads slowly gets fewer events, and always the latest."""

    def __init__(self, state: State, samples: Samples) -> None:
        self._state = state
        self._samples = samples
        self._listeners = 0

    @property
    def is_full(self) -> bool:
        """Whether nobody else is let in."""
        return self._listeners >= MAX_LISTENERS

    async def _events(self) -> AsyncIterator[bytes]:
        while True:
            yield b"event: state\ndata: %b\n\n" % self._state.body()
            await self._samples.next()


class Listening(StreamingResponse):
    """The events, for one listener: it has its place from now on until the response has ended."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream._events(), media_type="text/event-stream")
        self._stream = stream
        stream._listeners += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them until the listener is gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream._listeners -= 1
