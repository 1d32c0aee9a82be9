"""Server-sent events: the state of the node each second, to all who are let in."""

from __future__ import annotations

from collections.abc import AsyncIterator

from workers.agent.admin.samples import Samples
from workers.agent.admin.state import State


async def events(state: State, samples: Samples) -> AsyncIterator[bytes]:
    """Yield them, for one listener. Who reads slowly gets fewer, and always the latest."""
    while True:
        yield b"event: state\ndata: %b\n\n" % state.body()
        await samples.next()
