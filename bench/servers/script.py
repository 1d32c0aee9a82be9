"""What a pair of connections says to a server and must hear, encoded once.

A send! reaches every recv! that waits on its topic, so that each call in flight has a *lane* of its own. All replies on
a connection have the same size and the lane's number is one byte at the same place in each, so replies are counted,
told apart and compared by slicing alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

MAX_LANES: Final = 256
"""Lanes of one connection: the number is one byte."""

MIN_VALUE_BYTES: Final = 8
"""Bytes of the shortest value: it names its pair and its lane, so that no other value can pass for it."""


class Opening(NamedTuple):
    """What a connection begins with, and whether what was heard so far is all of the answer."""

    said: bytes = b""
    is_answered: Callable[[bytes], object] = bool

    @classmethod
    def until(cls, said: bytes, pattern: bytes) -> Opening:
        """Return one whose answer is over where a pattern is found."""
        return cls(said, re.compile(pattern).search)


NO_OPENING: Final = Opening()


@dataclasses.dataclass(frozen=True, slots=True)
class Lanes:
    """What the lanes of a pair are about: lane number n sends `values[n]` to `topics[n]`."""

    topics: Sequence[str]
    values: Sequence[bytes]  # each with its lane as its eighth byte, unless lanes share topics
    timeout_ms: int = 60_000
    is_first_dialect: bool = False  # of skywalker


@dataclasses.dataclass(frozen=True, slots=True)
class Script:
    """What one connection says and must hear, by lane.

    In every reply the byte at `lane_at` is the number of its lane, unless there is only one. A connection that
    `answers` begins by listening: its calls are its answers to what it hears. One that does not `meet` is answered by
    the server itself, whatever the other side does.
    """

    calls: Sequence[bytes]
    replies: Sequence[bytes]  # all of one size
    lane_at: int = 0
    opening: Opening = NO_OPENING  # before all calls
    ping: bytes = b""  # may be heard between any two replies
    pong: bytes = b""  # what is then said
    answers: bool = False
    meets: bool = True
    in_step: bool = False  # whether a call is made again only when the other side, too, is answered
    topics: Sequence[bytes] = ()  # canonical, of a node of skywalker

    def lanes_of(self, data: bytes) -> bytes | None:
        """Return the lanes that whole replies answer, or None if any of them is not the right one."""
        replies = self.replies
        lanes = data[self.lane_at :: len(replies[0])]
        try:
            expected = b"".join([replies[lane] for lane in lanes])
        except IndexError:
            return None
        return lanes if data == expected else None


class Pair(NamedTuple):
    """The scripts of a connection that receives and of one that sends."""

    receiver: Script
    sender: Script
