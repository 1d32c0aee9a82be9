"""The task in which one serve() runs: it runs handlers, is told to stop, and others wait for its end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from skywalker.clients.aio.driver import Driver, Pending

Handler = Callable[[Any], Awaitable[Any] | Any]
"""What answers requests: plain, or async."""


class Host:
    """Made in that task. `finish` is called once `stop` is set, if there is one."""

    def __init__(self, driver: Driver, stop: asyncio.Event | None, finish: Callable[[], Awaitable[None]]) -> None:
        self._driver = driver
        self._task = asyncio.current_task()
        self._ended = asyncio.Event()
        self._stopper = None if stop is None else asyncio.ensure_future(_when_set(stop, finish))

    async def watch(self, take: Pending) -> None:
        """Return where to wait for a request: a task of its own waits for what says to stop."""

    async def run(self, handler: Handler, value: Any) -> Any:
        """Return what the handler returns."""
        result = handler(value)
        return await result if inspect.isawaitable(result) else result

    async def wait(self, until: float) -> None:
        """Wait until the serve() has ended, or the time is `until`, unless that is asked in its own task."""
        if self._task is not asyncio.current_task():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await self._ended.wait()

    def end(self) -> None:
        """The serve() has ended."""
        self._ended.set()
        if self._stopper is not None:
            self._stopper.cancel()


async def _when_set(stop: asyncio.Event, finish: Callable[[], Awaitable[None]]) -> None:
    await stop.wait()
    await finish()
