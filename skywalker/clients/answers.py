"""What one serve() says to those who asked: that it is gone if it is, and its answers. Nobody waits for these calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from skywalker.clients import rpc
from skywalker.clients.call import Call
from skywalker.clients.requests import Kind
from skywalker.errors import LocalProtocolError, TooLarge

Pending = TypeVar("Pending", bound=Call)
"""A call under way, of a blocking client or one of asyncio."""


class Answers(Generic[Pending]):
    """Those of one serve(), whose client begins a call by `begin`: of a kind, with arguments, for so many seconds."""

    def __init__(self, begin: Callable[[Kind, tuple[Any, ...], float], Pending]) -> None:
        self._begin = begin
        self.under_way: list[Pending] = []

    def leave_will(self, request: rpc.Request) -> Pending | None:
        """Have the node tell who asked if we are lost before we answer."""
        try:
            return self._begin("will", (request.reply_topic, rpc.GONE), request.timeout)
        except (LocalProtocolError, TooLarge):
            return None  # max_frame is small

    def say(self, request: rpc.Request, answer: dict[str, Any]) -> None:
        """Answer a request. Whoever asked may be gone, which is not the handler's business."""
        self.under_way = [each for each in self.under_way if not each.ended]
        try:
            sent = self._begin("send", (request.reply_topic, answer), request.timeout)
        except (LocalProtocolError, TooLarge) as error:
            sent = self._begin("send", (request.reply_topic, rpc.failure(error)), request.timeout)
        self.under_way.append(sent)
