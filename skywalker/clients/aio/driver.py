"""Tasks that wait for calls, over any core.

All of it runs on one event loop. One timer serves all calls, and is set anew only when a
deadline comes before the time it is set for.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Generator, Iterable
from typing import Any

from skywalker.clients.call import Call, PubSubKind
from skywalker.clients.core import Core
from skywalker.clients.machine import machine_of
from skywalker.clients.requests import Kind
from skywalker.errors import Closed
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S


class Pending(Call):
    """A call under way, as begin() returns it. Awaiting it is awaiting its result()."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver = driver

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        return self.ended

    async def result(self) -> Any:
        """Wait for the outcome and return it.

        Raises TimedOut, Unreachable, Closed, Cancelled, or what the node refused the call with.
        If the waiting task is cancelled, so is the call.
        """
        await self._driver.wait(self)
        if self.error is not None:
            raise self.error
        return self.value

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result().__await__()


class Driver:
    """Runs the calls of tasks of the running event loop."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.is_closed = False
        self._loop = asyncio.get_running_loop()
        self.machine = machine_of(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._stalled = 0  # connections whose node does not keep up

    def now(self) -> float:
        """Return the time, in seconds on the clock that deadlines are of."""
        return self._loop.time()

    # Calls.

    def issue(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, however much is still to be written."""
        self.check_open()
        call = Pending(self)
        self.core.begin(call, kind, arguments, timeout, self._loop.time())
        self._wake_by(call.expires)
        self._act()
        return call

    async def begin(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, and let the node keep up."""
        call = self.issue(kind, arguments, timeout)
        if self._stalled:
            await self.wait_for_room(call)
        return call

    async def meet(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, and return it once it has ended."""
        call = self.issue(kind, arguments, timeout)
        if not call.ended:
            await self.wait(call)
        return call

    async def wait_for_room(self, call: Pending) -> None:
        """Return once more may be written after `call`."""

    async def wait_until_written(self, call: Pending) -> None:
        """Return once `call` is given to the kernel, as far as that takes it."""
        await asyncio.sleep(0)  # what a turn of the loop brings is written at its end

    async def wait(self, call: Pending, until: float = math.inf) -> None:
        """Return once `call` has ended, or the time is `until`; abandon it if the task is cancelled."""
        if call.ended:
            self._goes_on(call)
            return
        waiter = self._loop.create_future()
        if call.waiters is None:
            call.waiters = [waiter]
        else:
            call.waiters.append(waiter)
        try:
            if until == math.inf:
                await waiter
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(until):
                        await waiter
                if call.waiters is not None:  # it has not ended, and nobody waits here any more
                    call.waiters.remove(waiter)
        except BaseException:
            self.abandon(call)
            raise
        self._goes_on(call)

    async def wait_for_any(self, calls: Iterable[Pending], until: float) -> None:
        """Return once one of `calls` has ended, or the time is `until`. None is abandoned."""
        awaited = [*calls]
        if any(call.ended for call in awaited):
            return
        waiter = self._loop.create_future()
        for call in awaited:
            call.waiters = [*(call.waiters or ()), waiter]
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until):
                    await waiter
        finally:
            for call in awaited:
                if call.waiters is not None:  # it has not ended
                    call.waiters.remove(waiter)
                self._goes_on(call)

    def _goes_on(self, call: Pending) -> None:
        """Who waited for `call` does not any more, and has its outcome if it has ended."""

    def abandon(self, call: Pending) -> None:
        """End `call`, unless it has ended, because nobody wants its outcome."""
        if not call.ended:
            self.core.abandon(call, self._loop.time())
            self._act()

    async def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """End a call with Cancelled if it still waits; return whether it did."""
        self.check_open()
        canceller = Pending(self)
        self.core.cancel(call, canceller, timeout, self._loop.time())
        self._wake_by(canceller.expires)
        self._act()
        return await canceller.result() is True

    async def aside(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns that blocks."""
        return await asyncio.to_thread(function, *arguments)

    async def close(self) -> None:
        """End every call with Closed."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.core.close(Closed("the client was closed"))
        self._act()

    def check_open(self) -> None:
        """Raise Closed if the client was closed."""
        if self.is_closed:
            raise Closed("the client is closed")

    def _act(self) -> None:
        """Do what the core wants done, after every use of it."""
        ended = self.core.ended
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
        self.core.tick(now)
        self._act()
        wait = self.core.wait(now)
        if wait is not None and not self.is_closed:
            self._wake_by(now + wait)
