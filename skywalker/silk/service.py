"""What others ask of this node: the handler of each request runs once, and its reply goes to who asked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from skywalker.errors import LocalProtocolError, TooLarge
from skywalker.silk.answers import Answers
from skywalker.silk.info import MAX_ATTEMPTS, MAX_PERIOD_S, MAX_TYPES, MIN_PERIOD_S, Handling
from skywalker.wire import silk as wire
from skywalker.wire.silk import INTERNAL, MAX_NAME, Message, is_name

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


Send = Callable[[str, bytes], None]
"""Takes the id of a member and the frame of a reply to it."""


class Service:
    """The service of the node of this id. Messages come in by received(), and replies go out by `send`."""

    def __init__(self, id: str, handlers: Handlers, send: Send, new_id: Callable[[], str]) -> None:
        self.dropped = 0  # messages that nothing was done about
        self._id = id
        self._handlers = handlers
        self._send = send
        self._new_id = new_id
        self._answers = Answers()

    def received(self, message: Message, now: float) -> None:
        """Take in a message of a type that is not internal, from a member."""
        handler = self._handlers.get(message.type)
        if message.dest not in (self._id, wire.ALL) or message.src == self._id:
            self.dropped += 1
        elif handler is None:
            if message.wants_reply:
                self._refuse(message, f"nobody handles {message.type!r} here", wire.UNKNOWN_TYPE)
        elif not message.wants_reply:
            if not self._handlers.start(handler, message.data, lambda _: None, self._report):
                self.dropped += 1
        elif self._answers.is_new(message, now):
            self._handle(message, handler)
        elif (known := self._answers.answer_to(message)) is not None:
            self._send(message.src, known)

    def refusal(self, message: Message) -> bytes | None:
        """Return the frame of the reply to a message from a stranger, None if it wants none."""
        self.dropped += 1
        if message.dest != self._id or message.src == self._id or not message.wants_reply:
            return None
        reason = "the sender is not a member of this cluster: it has to join"
        return self._replying(message, _error(reason, wire.STRANGER)).encode()

    def _handle(self, message: Message, handler: Handler) -> None:
        def done(data: Any) -> None:
            self._reply(message, data)

        def failed(error: BaseException) -> None:
            self._refuse(message, _text(error), wire.FAILED)

        if not self._handlers.start(handler, message.data, done, failed):
            # It is sent again, and there may be room for it then.
            self._answers.withdraw(message)
            self.dropped += 1

    def _reply(self, message: Message, data: Any) -> None:
        try:
            frame = self._replying(message, data).encode()
        except (LocalProtocolError, TooLarge) as error:
            self._refuse(message, f"the handler's reply cannot be sent: {error}", wire.FAILED)
        else:
            self._answers.answered(message, frame, asyncio.get_running_loop().time())
            self._send(message.src, frame)

    def _refuse(self, message: Message, reason: str, code: str) -> None:
        self._reply(message, _error(reason, code))

    def _replying(self, message: Message, data: Any) -> Message:
        return message.reply_with(self._id, self._new_id(), data)

    def _report(self, error: BaseException) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a handler of messages that want no reply has failed", "exception": error}
        )


def _text(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__  # it cannot even be told


def _error(reason: str, code: str) -> dict[str, str]:
    return {"error": reason[: wire.MAX_REASON], "code": code}
