"""What a node of pub/sub is asked to acknowledge, and the connection over which it is asked."""

from __future__ import annotations

from collections import deque
from collections.abc import MutableSequence
from typing import Any, Final

from skywalker.clients.call import Call
from skywalker.clients.stream import Stream
from skywalker.pubsub.message import topic_text
from skywalker.wire.pubsub import PUBLISH, SUBSCRIBE, UNSUBSCRIBE

_WORDS: Final = {PUBLISH: "publish to", SUBSCRIBE: "subscribe to", UNSUBSCRIBE: "unsubscribe from"}


class Ask:
    """What a node is asked to acknowledge: for a call, or so that a new connection is as the one before."""

    __slots__ = ("call", "code", "frame", "topic", "was_written")

    def __init__(self, code: int, topic: bytes, frame: bytes, call: Call | None = None) -> None:
        """`code` says what is asked, PUBLISH for either kind of it."""
        self.code = code
        self.topic = topic
        self.frame = frame
        self.call = call
        self.was_written = False  # whether any node may have got it

    def __str__(self) -> str:
        return f"the {_WORDS[self.code]} {topic_text(self.topic)!r}"


class Connection(Stream):
    """What is so of one connection, and ends with it."""

    __slots__ = ("last_renewed", "owed")

    def __init__(self, touched: MutableSequence[Any]) -> None:
        super().__init__(touched)
        self.owed: deque[Ask] = deque()  # in the order in which they will be acknowledged
        self.last_renewed: Ask | None = None  # with it all topics of the connection before are in effect again

    def put(self, ask: Ask, now: float) -> None:
        """Have the node asked."""
        if not self.owed:
            self.heard(now)  # silence counts from when an acknowledgement is owed
        self.owed.append(ask)
        self.waiting += 1
        ask.was_written = True
        if ask.call is not None:
            ask.call.line = self  # type: ignore[assignment]  # the calls of one core are on streams of one kind
        self.write(ask.frame)

    def acknowledged(self) -> Ask:
        """Return what was asked first, which is owed no more."""
        self.waiting -= 1
        return self.owed.popleft()
