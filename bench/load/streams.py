"""Connections of publishers and subscribers. What each must hear is known beforehand: a few messages, over and over.

So what is read at a time is compared at a time, and messages are counted by their bytes; none is decoded, yet one
that is missing, doubled, changed or out of order is noticed where it happens.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Final

from bench.errors import WrongReply
from bench.load.line import Line
from bench.servers.pubsub import Dialect
from workers.engine.transport import Transport

READ_BYTES: Final = 64 * 1024

SHOWN: Final = 100
"""Bytes of what is wrong that an error tells, if a message is shorter."""


class Refrain:
    """Messages of one size that are heard one after the other, over and over; perhaps none at all."""

    __slots__ = ("_text", "cycle", "size")

    def __init__(self, messages: Sequence[bytes]) -> None:
        once = b"".join(messages)
        self.size = len(messages[0]) or 1
        self.cycle = len(once) or 1
        self._text = once * (READ_BYTES // self.cycle + 2)  # what is read may begin anywhere in it

    def goes(self, data: bytes, at: int) -> bool:
        """Return whether it goes on like this from byte `at` of a cycle; for no more than READ_BYTES."""
        return self._text.startswith(data, at)

    def part(self, at: int, size: int) -> bytes:
        """Return how it goes on."""
        return self._text[at : at + size]


class Stream(Line):
    """One connection: it says what it is told to, and hears a refrain, perhaps with pings in between."""

    __slots__ = ("_at", "_bytes", "_held", "_ping", "_pong", "_refrain", "_size", "count")

    def __init__(self, link: Transport, refrain: Refrain, dialect: Dialect, epoll: select.epoll) -> None:
        super().__init__(link, epoll)
        self.count = 0  # whole messages heard
        self._bytes = 0
        self._at = 0  # in the refrain's cycle
        self._refrain = refrain
        self._size = refrain.size
        self._ping, self._pong = dialect.ping, dialect.pong
        self._held = b""  # the beginning of a ping

    def ready(self) -> None:
        """Read what has come, and write what can be written. Raises WrongReply or Unreachable."""
        data = self.read(READ_BYTES)
        if data is None:
            return
        if self._held or not self._refrain.goes(data, self._at):
            data = self._without_pings(self._held + data)
        self._bytes += len(data)
        self._at = self._bytes % self._refrain.cycle
        self.count = self._bytes // self._size

    def heard_more_than(self, count: int) -> bool:
        """Return whether there was anything after so many messages, if only a part of one."""
        return self._bytes > count * self._size or bool(self._held)

    def _without_pings(self, data: bytes) -> bytes:
        """Return what is left of `data` when pings are answered; if it ends in the beginning of one, that is held."""
        ping, self._held = self._ping, b""
        if ping and ping in data:
            self.write(self._pong * data.count(ping))
            data = data.replace(ping, b"")
        if self._refrain.goes(data, self._at):
            return data
        for size in range(len(ping) - 1, 0, -1):
            if data.endswith(ping[:size]) and self._refrain.goes(data[:-size], self._at):
                self._held = ping[:size]
                return data[:-size]
        raise WrongReply(self._wrong(data))

    def _wrong(self, data: bytes) -> str:
        size = 1
        while self._refrain.goes(data[:size], self._at):
            size += 1
        # From where the message began, as far as it was read this time.
        start = max(0, size - 1 - (self._bytes + size - 1) % self._size)
        wanted = self._refrain.part(self._at + start, self._size)
        return f"{data[start : start + max(self._size, SHOWN)]!r} came where a correct server says {wanted!r}"
