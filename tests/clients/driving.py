"""Both colours of client behind one blocking face, so that one suite drives them all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any

import skywalker
from skywalker import aio
from tests.helpers import time_factor

HANG_S = 30.0


class Loop:
    """An event loop in a thread of its own, for as long as a `with` block."""

    def __enter__(self) -> Loop:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="event loop")
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine as a task; cancelling the future cancels the task."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and return its result."""
        return self.start(coroutine).result(HANG_S * time_factor())


class AioPending:
    """A call under way in an event loop."""

    def __init__(self, loop: Loop, pending: aio.Pending) -> None:
        self._loop = loop
        self.pending = pending

    def done(self) -> bool:
        return self.pending.done()

    def result(self) -> Any:
        return self._loop.run(self.pending.result())


class AioSharded:
    """A sharded topic in an event loop."""

    def __init__(self, loop: Loop, sharded: aio.Sharded) -> None:
        self._loop = loop
        self.topics = sharded.topics
        self.sharded = sharded

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.sharded, name)
        return lambda *args, **kwargs: self._loop.run(method(*args, **kwargs))


class AioDriver:
    """An asyncio junction with the methods of a blocking one."""

    def __init__(self, loop: Loop, junction: aio.Junction) -> None:
        self._loop = loop
        self.junction = junction

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.junction, name)
        return lambda *args, **kwargs: self._loop.run(method(*args, **kwargs))

    def begin(self, *args: Any, **kwargs: Any) -> AioPending:
        return AioPending(self._loop, self._loop.run(self.junction.begin(*args, **kwargs)))

    def sharded(self, *args: Any, **kwargs: Any) -> AioSharded:
        return AioSharded(self._loop, self.junction.sharded(*args, **kwargs))

    def cancel(self, call: AioPending) -> bool:
        return bool(self._loop.run(self.junction.cancel(call.pending)))

    def values(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        iterator = self.junction.values(*args, **kwargs)
        try:
            while True:
                try:
                    value = self._loop.run(anext(iterator))
                except StopAsyncIteration:
                    return
                yield value
        finally:
            self._loop.run(iterator.aclose())


Driver = Any
"""A skywalker.Junction, or an AioDriver, which has the same methods."""


class Place:
    """Somewhere clients meet: join() makes one more. What it made is closed with it."""

    def __init__(self, join: Callable[..., Driver]) -> None:
        self._join = join
        self._joined: list[Driver] = []

    def join(self, **options: Any) -> Driver:
        """Return a client of this place; one in process is the same object each time."""
        driver = self._join(**options)
        self._joined.append(driver)
        return driver

    def close(self) -> None:
        for driver in self._joined:
            driver.close()


def blocking_place(address: str | None, **usual: Any) -> Place:
    """Return a place for threads: at a node, with the usual options, or in process if there is no address."""
    if address is None:
        local = skywalker.LocalJunction()
        return Place(lambda **_: local)
    return Place(lambda **options: skywalker.connect(address, **usual, **options))


def aio_place(loop: Loop, address: str | None, **usual: Any) -> Place:
    """Return a place for tasks of `loop`, likewise."""

    async def make_local() -> aio.LocalJunction:
        return aio.LocalJunction()

    if address is None:
        local = AioDriver(loop, loop.run(make_local()))
        return Place(lambda **_: local)
    return Place(lambda **options: AioDriver(loop, loop.run(aio.connect(address, **usual, **options))))


def background(function: Callable[[], Any]) -> Future[Any]:
    """Run a function in a thread of its own."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
