"""A node of a Silk cluster, for programs without asyncio: the same as skywalker.silk.Node, run in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from skywalker.errors import Closed, HandlerFailed
from skywalker.silk import node as aio
from skywalker.silk import stream
from skywalker.silk.events import Event
from skywalker.silk.info import NodeInfo
from skywalker.silk.keys import Keys
from skywalker.silk.node import ANYWHERE, JOIN_S, Reply

T = TypeVar("T")

Handler = Callable[[Any], Any]
"""Takes a message's data and returns the reply's. It runs in a thread, and may block."""

THREADS: Final = 32
"""Handlers that run at a time; more of them wait."""


class Node:
    """One node, from open() to close(), or for a `with` block. Any thread may call its methods."""

    def __init__(
        self,
        router: str = ANYWHERE,
        pub: str = ANYWHERE,
        *,
        name: str = "",
        keepalive: float = 1.0,
        keys: Keys | str | Path | None = None,
        advertise: str = "",
        junction: Mapping[str, Any] | None = None,
    ) -> None:
        """As skywalker.silk.Node."""
        self._node = aio.Node(
            router, pub, name=name, keepalive=keepalive, keys=keys, advertise=advertise, junction=junction
        )
        self._threads = concurrent.futures.ThreadPoolExecutor(THREADS, "silk handler")
        self._loop: asyncio.AbstractEventLoop | None = None  # that of the thread
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._lock = threading.Lock()  # for the loop and whether the node is closed: nothing is begun after its end

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Listen, as the only member of a cluster. Raises ConfigError if its endpoints cannot be had."""
        with self._lock:
            if self._is_closed or self._loop is not None:
                raise Closed("a node is opened once: make another")
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_live, args=(self._loop,), name="silk", daemon=True)
            self._thread.start()
        try:
            self._call(self._node.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster, if that has not been done, and end all that is under way; handlers are waited for.

        So no handler can do this to its own node.
        """
        with self._lock:
            is_first, self._is_closed = not self._is_closed, True
        if self._loop is None or self._thread is None:
            return
        if is_first:
            ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            try:
                ended.result()
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
        self._thread.join()
        self._threads.shutdown()

    async def _end(self) -> None:
        await self._node.close()
        begun = asyncio.all_tasks() - {asyncio.current_task()}
        if begun:
            await asyncio.wait(begun)  # whoever waits for them is told that the node was closed
        await asyncio.get_running_loop().shutdown_asyncgens()

    # What it knows.

    @property
    def id(self) -> str:
        """Its own id."""
        return self._node.id

    @property
    def info(self) -> NodeInfo:
        """What it says of itself, once it is open."""
        return self._call(_told(lambda: self._node.info))

    @property
    def members(self) -> dict[str, NodeInfo]:
        """The other members of its cluster, by id."""
        return self._call(_told(lambda: self._node.members))

    @property
    def dropped(self) -> int:
        """Messages that made no sense, were too long, or could not be sent."""
        return self._call(_told(lambda: self._node.dropped))

    def events(self) -> Events:
        """Return what becomes known of the members from now on, to be iterated over."""
        return Events(self._call(_told(self._node.events)), self)

    # Coming and going.

    def join(self, endpoint: str, timeout: float = JOIN_S) -> None:
        """As that of skywalker.silk.Node, and so are the next ones."""
        self._call(self._node.join(endpoint, timeout))

    def seek(self, endpoint: str) -> None:
        """Try to join at an endpoint for as long as nobody answers there."""
        self._call(_told(lambda: self._node.seek(endpoint)))

    def leave(self) -> None:
        """Leave the cluster."""
        self._call(self._node.leave())

    # Saying something.

    def handle(
        self, type: str, handler: Handler | None = None, *, attempts: int = 3, period: float = 1.0
    ) -> Callable[[Handler], Handler]:
        """Call a function, in a thread, with the data of each message of a type. Or decorate one."""

        def add(handler: Handler) -> Handler:
            async def handle(data: Any) -> Any:
                return await asyncio.get_running_loop().run_in_executor(self._threads, _run, handler, data)

            if self._loop is None:
                self._node.handle(type, handle, attempts=attempts, period=period)
            else:
                self._call(_told(lambda: self._node.handle(type, handle, attempts=attempts, period=period)))
            return handler

        if handler is not None:
            add(handler)
        return add

    def request(self, node: str, type: str, data: Any = None) -> Any:
        """Ask the member of this id."""
        return self._call(self._node.request(node, type, data))

    def request_any(self, type: str, data: Any = None) -> Any:
        """Ask one member that handles a type."""
        return self._call(self._node.request_any(type, data))

    def request_all(self, type: str, data: Any = None) -> Generator[Reply, None, None]:
        """Ask all members that handle a type; yield their replies as they come."""
        replies = self._node.request_all(type, data)
        try:
            while (reply := self._call(_next(replies))) is not None:
                yield reply
        finally:
            # Not waited for: whoever collects what is left of this may be the node's own thread.
            self._begin(_end(replies))

    def tell(self, node: str, type: str, data: Any = None) -> None:
        """Send a message to the member of this id."""
        self._call(self._node.tell(node, type, data))

    def tell_any(self, type: str, data: Any = None) -> None:
        """Send a message to one member that handles its type."""
        self._call(self._node.tell_any(type, data))

    def broadcast(self, type: str, data: Any = None) -> None:
        """Send a message to all members that handle its type."""
        self._call(self._node.broadcast(type, data))

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have the node's own thread do something; return what comes of it."""
        future = self._begin(work)
        if future is None:
            raise Closed("the node was closed" if self._is_closed else "the node is not open")
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupt, perhaps: nobody waits for it any more
            raise

    def _begin(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T] | None:
        """Have the node's own thread do something, if there is one."""
        with self._lock:
            if self._is_closed or self._loop is None:
                work.close()
                return None
            return asyncio.run_coroutine_threadsafe(work, self._loop)


class Events:
    """The events from when it was made; iterate over it. Ends when the node is closed, or by close()."""

    def __init__(self, events: stream.Events, node: Node) -> None:
        self._events = events
        self._node = node

    def __iter__(self) -> Iterator[Event]:
        while (event := self.next()) is not None:
            yield event

    def next(self, timeout: float | None = None) -> Event | None:
        """Return the next event, None once there will be no more.

        Raises TimeoutError if none came within `timeout` seconds, Closed if there were more than could be kept.
        """
        try:
            return self._node._call(_within(self._events, timeout))
        except Closed:
            if self._node._is_closed:
                return None
            raise

    def close(self) -> None:
        """Listen no more; any thread may say so, and who waits for the next event waits no longer."""
        with contextlib.suppress(Closed):
            self._node._call(_told(self._events.close))


def _live(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped, and end whatever an interrupt has kept from its end."""
    try:
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):  # whoever waited for it is gone
                loop.run_until_complete(task)
    finally:
        loop.close()


def _run(handler: Handler, data: Any) -> Any:
    try:
        return handler(data)
    except (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration) as error:
        # From here they would end the node's own thread, or be lost on the way there.
        raise HandlerFailed(f"{type(error).__name__} {error}".strip()) from error


async def _told(question: Callable[[], T]) -> T:
    return question()


async def _next(replies: AsyncIterator[Reply]) -> Reply | None:
    return await anext(replies, None)


async def _end(replies: AsyncGenerator[Reply, None]) -> None:
    await replies.aclose()


async def _within(events: stream.Events, timeout: float | None) -> Event | None:
    async with asyncio.timeout(timeout):
        return await anext(events, None)
