"""What a node of pub/sub is asked to acknowledge, and the connection over which it is asked."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from skywalker.clients.silence import Silence
from skywalker.errors import SkywalkerError
from skywalker.pubsub.message import topic_text
from skywalker.wire.pubsub import PUBLISH, SUBSCRIBE, UNSUBSCRIBE

_WORDS: Final = {PUBLISH: "publish to", SUBSCRIBE: "subscribe to", UNSUBSCRIBE: "unsubscribe from"}


class Ask:
    """What a node is asked to acknowledge and, once it has `ended`, the `error` to raise, if any.

    Shells derive from it; `waiters` is theirs: whom to wake when it has ended.
    """

    __slots__ = ("code", "ended", "error", "expires", "frame", "timeout", "topic", "waiters", "was_written")

    def __init__(self, code: int, topic: bytes, frame: bytes, timeout: float) -> None:
        """`code` says what is asked, PUBLISH for either kind of it; `timeout` is in seconds, from Exchange.begin()."""
        self.code = code
        self.topic = topic
        self.frame = frame
        self.timeout = timeout
        self.expires = 0.0
        self.ended = False
        self.error: SkywalkerError | None = None
        self.waiters: list[Any] | None = None
        self.was_written = False  # whether any node may have got it

    def __str__(self) -> str:
        return f"the {_WORDS[self.code]} {topic_text(self.topic)!r}"


class Connection:
    """What is so of one connection, and ends with it."""

    __slots__ = ("hang_up", "last_renewed", "out", "out_bytes", "owed", "silence", "tail")

    def __init__(self) -> None:
        self.owed: deque[Ask] = deque()  # in the order in which they will be acknowledged
        self.last_renewed: Ask | None = None  # with it all topics of the connection before are in effect again
        self.out: list[bytes] = []
        self.out_bytes = 0
        self.tail = b""  # the beginning of a message
        self.silence = Silence()
        self.hang_up = ""

    def write(self, ask: Ask, now: float) -> None:
        if not self.owed:
            self.silence.broken(now)  # it counts from when an acknowledgement is owed
        self.owed.append(ask)
        self.out.append(ask.frame)
        self.out_bytes += len(ask.frame)
        ask.was_written = True

    def end(self, why: str) -> None:
        self.hang_up = self.hang_up or why
