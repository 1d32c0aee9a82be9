"""The Junction interface for asyncio: the names and the meaning of `interface.Junction`, awaited.

Tasks of one event loop may share one. A task that is cancelled while it waits for a call
cancels the call.
"""

from __future__ import annotations

import abc
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Self, TypeVar

from skywalker.clients import rpc
from skywalker.clients.aio_serving import Serving
from skywalker.clients.call import Call
from skywalker.clients.interface import RAISE, Raise, greeting, meeting_arguments
from skywalker.clients.pages import Pages
from skywalker.clients.requests import MAX_TIMEOUT_S, Kind, MeetingKind
from skywalker.errors import NoReply, TimedOut
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S, DEFAULT_TIMEOUT_S

T = TypeVar("T")


class Pending(Call):
    """A call under way, as begin() returns it. Awaiting it is awaiting its result()."""

    __slots__ = ("_junction",)

    def __init__(self, junction: AsyncJunction) -> None:
        super().__init__()
        self._junction = junction

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        return self.ended

    async def result(self) -> Any:
        """Wait for the outcome and return it.

        Raises TimedOut, Unreachable, Closed, Cancelled, or what the node refused the call with.
        If the waiting task is cancelled, so is the call.
        """
        if not self.ended:
            await self._junction._wait(self)
        if self.error is not None:
            raise self.error
        return self.value

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result().__await__()


class AsyncJunction(abc.ABC):
    """Where tasks meet on topics. Close it, or use it in an `async with` statement."""

    # Meetings.

    async def send(
        self, topic: Any, value: Any, timeout: float = DEFAULT_TIMEOUT_S, default: T | Raise = RAISE
    ) -> bool | T:
        """Give `value` to every receiver that waits on `topic`, and to one taker of each group.

        With none there, wait for the first. Returns True once somebody has it. If nobody comes
        in time, returns `default`, or raises TimedOut if none is given.
        """
        call = await self._meet("send", (topic, value), timeout)
        outcome = _outcome(call, default)
        return outcome if call.error else outcome is True

    async def recv(self, topic: Any, timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """Return the next value sent to `topic`, the oldest that waits if any does.

        If none comes in time, returns `default`, or raises TimedOut if none is given.
        """
        return _outcome(await self._meet("recv", (topic,), timeout), default)

    async def take(self, topic: Any, group: Any = "", timeout: float = DEFAULT_TIMEOUT_S, default: Any = RAISE) -> Any:
        """As recv(), but of all that take from `topic` in one `group`, only one gets each value."""
        return _outcome(await self._meet("take", (topic, group), timeout), default)

    async def begin(
        self, kind: MeetingKind, topic: Any, value: Any = RAISE, *, group: Any = "", timeout: float = DEFAULT_TIMEOUT_S
    ) -> Pending:
        """Start a call without waiting for its outcome. `value` goes with "send", and `group` with "take"."""
        return await self._begin(kind, meeting_arguments(kind, topic, value, group), timeout)

    @abc.abstractmethod
    async def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """Cancel a call; its result() then raises Cancelled. Returns whether it still waited.

        That is what becomes of it. Of a send that somebody may just have, the node may only know it
        at the end of the call's own time. Raises TimedOut if it is not known within `timeout`.
        """

    async def values(self, topic: Any, group: Any = None, timeout: float | None = None) -> AsyncIterator[Any]:
        """Iterate over the values sent to `topic`, taken in `group` if one is given.

        One call at a time is under way, and only while the next value is waited for; so what
        is sent meanwhile waits for it. Ends once no value has come for `timeout` seconds.
        """
        while True:
            wait = MAX_TIMEOUT_S if timeout is None else timeout
            try:
                value = await (self.recv(topic, wait) if group is None else self.take(topic, group, wait))
            except TimedOut:
                if timeout is None:
                    continue
                return
            yield value

    # Requests.

    async def request(self, topic: Any, value: Any, timeout: float = DEFAULT_TIMEOUT_S) -> Any:
        """Return what the handler that serves `topic` returns for `value`.

        Raises TimedOut if nobody takes the request up in time, NoReply if somebody does and does not answer in time,
        or is gone before, and HandlerFailed if the handler raised.
        """
        reply_topic = rpc.private_topic()
        answer = await self._begin("recv", (reply_topic,), timeout)
        try:
            await self.send(topic, rpc.request(reply_topic, value, timeout), timeout)
            try:
                return rpc.result(topic, await answer.result())
            except TimedOut as error:
                raise error if isinstance(error, NoReply) else rpc.unanswered(topic, timeout) from None
        finally:
            self._abandon(answer)

    async def serve(
        self,
        topic: Any,
        handler: Callable[[Any], Awaitable[Any] | Any],
        *,
        group: Any = "",
        timeout: float | None = None,
        stop: asyncio.Event | None = None,
    ) -> None:
        """Answer requests on `topic` with what `handler` returns, until `stop` is set or this junction is closed.

        The handler is plain or async. Each request goes to one of those that serve the topic in the
        same group; one of them handles one at a time. An exception of the handler is raised as
        HandlerFailed at the other side. Ends also once no request has come for `timeout` seconds.
        Once `stop` is set nothing more is taken up; a handler that runs goes on, and serve() returns
        when its answer is delivered.
        """
        serving = Serving(self, topic, handler, group, timeout, stop)
        self._servings.add(serving)
        try:
            await serving.run()
        finally:
            self._servings.discard(serving)

    # The node.

    async def tokens(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[int]:
        """Return the sorted tokens of the node, signed 64-bit."""
        return list(await (await self._begin("tokens", (), timeout)).result())

    async def topic(self, topic: Any, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> dict[Any, Any]:
        """Return who waits on `topic`: receivers, takers by group, senders, and the age of the oldest."""
        return dict(await (await self._begin("topic", (topic,), timeout)).result())

    async def ping(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """Return True once the node has answered."""
        return await (await self._begin("ping", (), timeout)).result() is True

    async def hello(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> dict[Any, Any]:
        """Return what the node says of itself. Empty if it does not know the question, as an original one."""
        return greeting(await (await self._begin("hello", ({},), timeout)).result())

    async def nodes(self, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> list[dict[Any, Any]]:
        """Return the nodes of the cluster as the node sees them, in the order of their ids.

        Of each its id, name, address, port, workers, steering and tokens.
        """
        pages = Pages()
        deadline = time.monotonic() + timeout
        while pages.question is not None:
            left = deadline - time.monotonic()
            if left < 0 and pages.nodes:
                raise TimedOut(f"the node did not tell all nodes within {timeout:g} s")
            pages.add(await (await self._begin("nodes", pages.question, max(0.0, left))).result())
        return pages.nodes

    # Life.

    @abc.abstractmethod
    async def close(self, drain: float = 0.0) -> None:
        """End every call under way with Closed. What is called later raises Closed too.

        Before that, each serve() is told to stop, and has `drain` seconds for the handler that runs to end and its
        answer to be delivered.
        """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def _begin(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, and let the node keep up."""
        call = self._issue(kind, arguments, timeout)
        if self._stalled:
            await self._wait_for_room(call)
        return call

    async def _meet(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, and return it once it has ended."""
        call = self._issue(kind, arguments, timeout)
        if self._stalled:
            await self._wait_for_room(call)
        if not call.ended:
            await self._wait(call)
        return call

    # What the implementations differ in.

    _servings: set[Serving]
    """Those that go on."""

    @abc.abstractmethod
    async def _meet_node(self) -> None:
        """Have it be known what the node can do."""

    _stalled = 0  # connections whose node does not keep up

    @abc.abstractmethod
    def _issue(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call."""

    @abc.abstractmethod
    async def _wait_for_room(self, call: Pending) -> None:
        """Return once more may be written after `call`."""

    @abc.abstractmethod
    async def _wait(self, call: Pending) -> None:
        """Return once `call` has ended; abandon it if interrupted."""

    @abc.abstractmethod
    def _abandon(self, call: Pending) -> None:
        """End `call`, unless it has ended, because nobody wants its outcome."""


def _outcome(call: Pending, default: Any) -> Any:
    """Return the result of a meeting that has ended; if nobody came in time, `default`, unless that is RAISE."""
    if call.error is None:
        return call.value
    if default is RAISE or not isinstance(call.error, TimedOut):
        raise call.error
    return default
