"""What others ask of this node: the handler of each request runs once, and its reply goes to who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from skywalker.errors import LocalProtocolError, TooLarge
from skywalker.silk.answers import Answers
from skywalker.silk.handlers import Handler, Handlers
from skywalker.wire import silk as wire
from skywalker.wire.silk import Message

Send = Callable[[str, bytes], None]
"""Takes the id of a member and the frame of a reply to it."""


class Service:
    """The service of the node of this id. Messages come in by received(), and replies go out by `send`."""

    def __init__(self, id: str, handlers: Handlers, send: Send) -> None:
        self.dropped = 0  # messages that nothing was done about
        self._id = id
        self._handlers = handlers
        self._send = send
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
        return message.reply_with(self._id, wire.new_id(), data)

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
