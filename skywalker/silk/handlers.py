"""The handlers of a node's message types, and those that run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from skywalker.errors import LocalProtocolError
from skywalker.silk.info import MAX_ATTEMPTS, MAX_PERIOD_S, MAX_TYPES, MIN_PERIOD_S, Handling
from skywalker.wire.silk import INTERNAL, MAX_NAME, is_name

Handler = Callable[[Any], Any | Awaitable[Any]]
"""Takes a message's data and returns the reply's; what it raises is told to who asked."""

MAX_RUNNING: Final = 1000
"""Handlers that run at a time. What comes beyond that is left undone: who asks asks again."""


type_of = type  # which is the name of something else here


class Handlers:
    """For the event loop that runs when they do."""

    def __init__(self) -> None:
        self.declared: Mapping[str, Handling] = {}
        self._handlers: dict[str, Handler] = {}
        self._running: set[asyncio.Task[None]] = set()

    def add(self, type: str, handler: Handler, handling: Handling) -> None:
        """Have a handler for a type, instead of the one that it has. Raises LocalProtocolError."""
        check_type(type)
        if type_of(handling.attempts) is not int or not 1 <= handling.attempts <= MAX_ATTEMPTS:
            raise LocalProtocolError(
                f"{handling.attempts!r} attempts: a whole number of 1 to {MAX_ATTEMPTS} is allowed"
            )
        if type_of(handling.period_s) not in (int, float) or not MIN_PERIOD_S <= handling.period_s <= MAX_PERIOD_S:
            raise LocalProtocolError(
                f"a period of {handling.period_s!r} s: allowed are {MIN_PERIOD_S} to {MAX_PERIOD_S:g}"
            )
        if type not in self._handlers and len(self._handlers) >= MAX_TYPES:
            raise LocalProtocolError(f"a node can handle {MAX_TYPES} types, and not {type!r} too")
        self._handlers[type] = handler
        self.declared = {**self.declared, type: handling}

    def get(self, type: str) -> Handler | None:
        """Return the handler of a type, None if it has none."""
        return self._handlers.get(type)

    def start(
        self, handler: Handler, data: Any, done: Callable[[Any], None], failed: Callable[[BaseException], None]
    ) -> bool:
        """Run a handler, and call one of the two with what comes of it; return whether there was room for it."""
        if len(self._running) >= MAX_RUNNING:
            return False
        task = asyncio.get_running_loop().create_task(_run(handler, data, done, failed))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def stop(self) -> None:
        """Cancel those that run, and wait until they have ended."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def _run(
    handler: Handler, data: Any, done: Callable[[Any], None], failed: Callable[[BaseException], None]
) -> None:
    try:
        result = handler(data)
        if inspect.isawaitable(result):
            result = await result
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # by stop()
        failed(error)  # something that the handler has waited for was cancelled
    except Exception as error:
        failed(error)
    else:
        done(result)


def check_type(type: str) -> None:
    """Raise LocalProtocolError for a type that is none of a program's own."""
    if not is_name(type):
        raise LocalProtocolError(f"{type[:MAX_NAME]!r} is not a message type: use 1 to {MAX_NAME} printable characters")
    if type.startswith(INTERNAL):
        raise LocalProtocolError(f"the message type {type!r} begins with {INTERNAL}, as those of the dialect itself do")
