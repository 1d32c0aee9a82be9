"""A stream of words over one link, for others than the two workers at its ends: what they relay.

Either opens one, by a number that is its own. The other end says it by the same number as an owner of topics would, so
that the two do not mix up theirs.
"""

from __future__ import annotations

from typing import Final, Protocol

from skywalker.members import Place
from skywalker.wire.junction import NIL

OTHER_WAY: Final = (0x4F ^ 0x53) << 56
"""By which the numbers differ that the two ends say."""


class Carrying(Protocol):
    """A link, as far as streams need it."""

    handle: int
    streams: dict[int, Stream]
    place: Place | None

    @property
    def parts(self) -> bool:
        """Whether the other end has said that it goes, as is planned."""

    def say_of(self, number: int, word: bytes) -> None:
        """Say a word of the stream of that number."""


class Listener(Protocol):
    """Who hears what comes of a stream."""

    def heard(self, stream: Stream, word: bytes) -> None:
        """The other end says this. Raises ValueError if it makes no sense."""

    def cut(self, stream: Stream) -> None:
        """The link has ended, and with it the stream."""


class Stream:
    """Our end of one."""

    __slots__ = ("_number", "link", "listener")

    def __init__(self, link: Carrying, number: int, listener: Listener) -> None:
        """`number` is that by which the other end says it."""
        self.link = link
        self._number = number
        self.listener = listener
        link.streams[number] = self

    def say(self, word: bytes) -> None:
        self.link.say_of(self._number ^ OTHER_WAY, word)

    def end(self, last: bytes | None = NIL) -> None:
        """Hear nothing more of it, and say that, if anything."""
        if self.link.streams.get(self._number) is self:
            del self.link.streams[self._number]
            if last is not None:
                self.say(last)
