"""Tasks that wait for calls, over any core: what asyncio clients have in common.

All of it runs on one event loop. One timer serves all calls, and is set anew only when a
deadline comes before the time it is set for.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Any

from skywalker.clients.aio_interface import AsyncJunction, Pending
from skywalker.clients.call import Core
from skywalker.clients.requests import Kind, milliseconds
from skywalker.errors import Closed
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S


class TaskJunction(AsyncJunction):
    """A junction whose callers are tasks of the running event loop."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._closed = False
        self._servings = set()

    async def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        self._check_open()
        canceller = Pending(self)
        self._core.cancel(call, canceller, timeout, self._loop.time())
        self._wake_by(canceller.expires)
        self._act()
        return await canceller.result() is True

    async def close(self, drain: float = 0.0) -> None:
        if milliseconds(drain):
            await self._finish_serving(drain)
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._core.close(Closed("the client was closed"))
        self._act()

    async def _finish_serving(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                servings = [*self._servings]
                await asyncio.gather(*(serving.finish(seconds) for serving in servings))
                for serving in servings:
                    await serving.wait()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the client is closed")

    async def _meet_node(self) -> None:
        pass  # there is none

    def _issue(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        self._check_open()
        call = Pending(self)
        self._core.begin(call, kind, arguments, timeout, self._loop.time())
        self._wake_by(call.expires)
        self._act()
        return call

    async def _wait_for_room(self, call: Pending) -> None:
        raise AssertionError("nothing is stalled that has no connection")

    async def _wait(self, call: Pending) -> None:
        waiter = self._loop.create_future()
        if call.waiters is None:
            call.waiters = [waiter]
        else:
            call.waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            self._abandon(call)
            raise

    def _abandon(self, call: Pending) -> None:
        if not call.ended:
            self._core.abandon(call, self._loop.time())
            self._act()

    def _act(self) -> None:
        """Do what the core wants done, after every use of it."""
        ended = self._core.ended
        if ended:
            for call in ended:
                for waiter in call.waiters or ():
                    if not waiter.done():
                        waiter.set_result(None)
                call.waiters = None
            ended.clear()

    def _wake_by(self, at: float) -> None:
        if at < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at, self._tick)
            self._timer_at = at

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = math.inf
        now = self._loop.time()
        self._core.tick(now)
        self._act()
        wait = self._core.wait(now)
        if wait is not None and not self._closed:
            self._wake_by(now + wait)
