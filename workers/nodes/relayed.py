"""A connection to a worker of another node that passes over links of others: to a sibling, and from there to it.

    the side that makes it says {...} as in :peer, and hears {...} as there; or, of one that there is, with the number
    of the "way" that it is to go, "to" which life, and hears {"goes_on": true}. Then either end says
      bin      what is written, in order
      int      how many bytes it has read, of all
      [int]    with which byte of all it goes on
      nil      nothing more comes from here
      false    it goes another way from here

What is written is kept until the other end has read it, and that is at most WINDOW. So no more of one is on its way,
and nothing is lost with the sibling: what was not read is said again by its successor.
"""

from __future__ import annotations

from typing import Any, Final

from skywalker.wire import values
from skywalker.wire.junction import NIL
from workers.engine.loop import Alarm, Turn
from workers.engine.points import reached
from workers.engine.transport import Name
from workers.mesh.link import Link
from workers.mesh.stream import Stream

WINDOW: Final = 64 * 1024
"""Bytes that are on their way in one direction, at most."""

PIECE: Final = 16 * 1024
"""And in one message."""

AWAY: Final = values.pack(False)

RESUME_S: Final = 0.5
"""Seconds without a way, at most."""


class Relayed:
    """Our end of one, a Transport. `relay` is the slot of the sibling that it passes, if we have made it."""

    __slots__ = (
        "_again", "_alarm", "_consumed", "_core_link", "_inbox", "_is_broken", "_is_shut", "_next", "_received",
        "_stream", "_turn", "_unread", "_ways", "_written", "ended", "relay",
    )  # fmt: skip

    def __init__(self, stream: Stream, turn: Turn, relay: int | None) -> None:
        self.relay = relay
        self.ended = False
        self._turn = turn
        self._stream: Stream | None = stream
        self._next: Stream | None = None  # by which we have asked to go on
        self._again = 0  # bytes that come a second time
        self._inbox: list[bytes] = []
        self._received = self._consumed = 0  # bytes, of all
        self._written = 0  # bytes, of all
        self._unread = bytearray()  # the last of these
        self._is_shut = self._is_broken = False
        self._ways = 0  # that it was to go
        self._core_link: Link | None = None
        self._alarm = Alarm()
        stream.listener = self

    def serves(self, link: Link) -> None:
        """The core reads and writes it as that link."""
        self._core_link = link
        self._attend()

    def _attend(self) -> None:
        if self._core_link is not None:
            via = 0 if self._stream is None else self._stream.link.handle
            self._core_link.attend(via, self._written - len(self._unread))

    @property
    def is_read(self) -> bool:
        """Whether the other end has read all that is written: what it has not may be lost with who relays it."""
        return not self._unread

    # As a transport.

    begun = 0

    def names(self) -> tuple[str, ...]:
        return ()

    def fileno(self) -> int:
        return -1

    def detach(self) -> None:
        return None

    def getsockname(self) -> Name:
        return ""

    def setsockopt(self, level: int, option: int, value: int) -> None:
        pass  # it has no socket

    def recv(self, size: int) -> bytes:
        if not self._inbox:
            if self._is_broken or self.ended:
                return b""
            raise BlockingIOError
        data, self._inbox = b"".join(self._inbox), []
        self._consumed += len(data)
        self._say(self._consumed)
        return data

    def send(self, data: bytes) -> int:
        if self._is_broken:
            raise BrokenPipeError
        taken = data[: WINDOW - len(self._unread)]
        if self._stream is None or not taken:
            raise BlockingIOError
        self._unread += taken
        self._written += len(taken)
        self._write(taken)
        return len(taken)

    def _write(self, data: bytes) -> None:
        for begin in range(0, len(data), PIECE):
            self._say(data[begin : begin + PIECE])

    def shutdown(self, how: int) -> None:
        self._is_shut = True
        self._say(None)

    def close(self) -> None:
        self._break()

    # As a stream.

    def _say(self, word: Any) -> None:
        if self._stream is not None:
            self._stream.say(values.pack(word))

    def heard(self, stream: Stream, word: bytes) -> None:
        try:
            told = values.unpack(word, text_keys=True)
            if stream is self._stream:
                self._hear(told)
            elif stream is self._next:
                self._answered(told)
        except ValueError:
            self._break()  # and of the link there is to be nothing left

    def _hear(self, told: object) -> None:
        match told:
            case bytes():
                again = min(self._again, len(told))
                self._again -= again
                self._received += len(told) - again
                if self._received - self._consumed > WINDOW:
                    raise ValueError("more than can be on its way")
                if fresh := told[again:]:  # nothing at all would be the end
                    self._inbox.append(fresh)
            case False if self._stream is not None:
                stream = self._stream
                stream.end()
                self.cut(stream)
            case int():
                self._has_read(told)
            case [int(begins)] if 0 <= begins <= self._received:
                self._again = self._received - begins
            case None:
                self.ended = True
            case _:
                raise ValueError("no word of a stream")
        self._attend()

    def _has_read(self, total: int) -> None:
        if not 0 <= total <= self._written:
            raise ValueError("it has read what was not written")
        del self._unread[: max(0, len(self._unread) - (self._written - total))]

    def cut(self, stream: Stream) -> None:
        if stream is self._next:
            self._next = None
        elif stream is self._stream:
            self._stream = None
        if self._stream is None and self._alarm.at is None:
            self._alarm.set(self._turn, self._turn.now + RESUME_S, self._break)

    def _break(self) -> None:
        self._alarm.off(self._turn)
        self._is_broken = True
        for stream in (self._stream, self._next):
            if stream is not None:
                stream.end()
        self._stream = self._next = None
        self._attend()

    # Another way.

    def go_by(self, sibling: Link, question: dict[str, Any]) -> None:
        """Ask the other end to go on by another sibling. What goes on meanwhile goes as before."""
        if self._is_broken:
            return
        if self._next is not None:
            self._next.end(AWAY)  # the other end may use it already
        self._next = sibling.open_stream(self)
        self._ways += 1
        self._next.say(values.pack({**question, "way": self._ways}))

    def _answered(self, told: object) -> None:
        stream = self._next
        assert stream is not None, "it was asked"
        if isinstance(told, dict) and told.get("goes_on") is True:
            assert reached("a relayed link goes another way")
            self._goes_by(stream, NIL)
            return
        self._next = None
        stream.end()
        if self._stream is None:
            self._break()

    def goes_on(self, stream: Stream, way: int) -> None:
        """Go by this stream, as the other end asks, unless it has asked to go another way since."""
        if self._is_broken or way <= self._ways:
            stream.end()
            return
        self._ways = way
        stream.listener = self
        stream.say(values.pack({"goes_on": True}))
        self._goes_by(stream, AWAY)  # which may overtake what is said this way

    def _goes_by(self, stream: Stream, last: bytes) -> None:
        """Say what is not read yet anew, by this stream."""
        old, self._stream, self._next = self._stream, stream, None
        if old is not None:
            old.end(last)
        self._alarm.off(self._turn)
        self._say(self._consumed)
        self._say([self._written - len(self._unread)])
        self._write(bytes(self._unread))
        if self._is_shut:
            self._say(None)
        self._attend()
