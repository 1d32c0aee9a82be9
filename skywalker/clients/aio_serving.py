"""Answering requests in a task: one serve() of an asyncio client, from its first request to its last answer."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from skywalker.clients import rpc
from skywalker.clients.answers import Answers
from skywalker.clients.log import log
from skywalker.clients.requests import MAX_TIMEOUT_S
from skywalker.clients.serving import ANSWERED_S
from skywalker.errors import Cancelled, Closed, SkywalkerError, TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

if TYPE_CHECKING:
    from skywalker.clients.aio_interface import AsyncJunction, Pending


class Serving:
    """One serve(). It takes one request after the other, until it is to finish."""

    def __init__(
        self,
        junction: AsyncJunction,
        topic: Any,
        handler: Callable[[Any], Awaitable[Any] | Any],
        group: Any,
        timeout: float | None,
        stop: asyncio.Event | None,
    ) -> None:
        self._junction = junction
        self._topic = topic
        self._handler = handler
        self._group = group
        self._timeout = timeout
        self._stop = stop
        self._is_finishing = False
        self._take: Pending | None = None
        self._answers: Answers[Pending] = Answers(junction._issue)
        self._ended = asyncio.Event()
        self._task = asyncio.current_task()

    async def run(self) -> None:
        """Answer requests until told to finish, or none has come for `timeout` seconds, or the junction is closed."""
        stopper = None if self._stop is None else asyncio.ensure_future(self._finish_when(self._stop))
        try:
            await self._junction._meet_node()
            while (message := await self._next()) is not _NOTHING:
                request = rpc.Request.parse(message)
                if request is None:
                    log.warning("a value sent to the served topic %r is not a request", self._topic)
                else:
                    await self._answer(request)
            await self._deliver()
        except Closed:
            return
        finally:
            self._ended.set()
            if stopper is not None:
                stopper.cancel()

    async def finish(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> None:
        """Take no more requests. It waits for the node up to `timeout` seconds, not for us."""
        self._is_finishing = True
        take = self._take
        if take is not None and not take.ended:
            with contextlib.suppress(SkywalkerError):  # it goes on then, until the junction is closed
                await self._junction.cancel(take, timeout)

    async def wait(self) -> None:
        """Wait until it has ended, unless that is asked by its own handler."""
        if self._task is not asyncio.current_task():
            await self._ended.wait()

    async def _finish_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        await self.finish()

    async def _next(self) -> Any:
        """Return the next value that is sent to the topic, _NOTHING if no more are wanted."""
        wait = MAX_TIMEOUT_S if self._timeout is None else self._timeout
        while self._goes_on():
            take = self._take = self._junction._issue("take", (self._topic, self._group), wait)
            try:
                return await take.result()
            except Cancelled:
                break
            except TimedOut:
                if self._timeout is not None:
                    break
        return _NOTHING

    def _goes_on(self) -> bool:
        return not (self._is_finishing or (self._stop is not None and self._stop.is_set()))

    async def _answer(self, request: rpc.Request) -> None:
        will = self._answers.leave_will(request)
        answer = rpc.GONE  # unless the handler ends: an exception that is none of its own ends the serving
        try:
            await asyncio.sleep(0)  # which has the will written: the handler may not give the loop a chance for long
            answer = await self._handle(request.value)
        finally:
            with contextlib.suppress(Closed):  # the next take says so
                self._answers.say(request, answer)
                if will is not None:
                    self._junction._abandon(will)
        if self._junction._stalled and self._answers.under_way:
            await self._junction._wait_for_room(self._answers.under_way[-1])

    async def _handle(self, value: Any) -> dict[str, Any]:
        try:
            result = self._handler(value)
            return rpc.success(await result if inspect.isawaitable(result) else result)
        except Exception as error:
            log.exception("the handler of a request failed")
            return rpc.failure(error)

    async def _deliver(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ANSWERED_S):
                for answer in self._answers.under_way:
                    with contextlib.suppress(SkywalkerError):
                        await answer.result()


_NOTHING: Final[Any] = object()
