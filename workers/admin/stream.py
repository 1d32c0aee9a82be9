"""Server-sent events: the state of the node each second, to as many as are let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

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

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the bytes of each event, for one listener."""
        self._listeners += 1
        try:
            while True:
                yield b"event: state\ndata: %b\n\n" % self._state.body()
                await self._samples.next()
        finally:
            self._listeners -= 1
