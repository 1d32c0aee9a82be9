"""The frames of a benchmark, encoded once: what each lane calls, and what it must be answered.

A send! reaches every recv! that waits on its topic, so that each call in flight has a *lane* of
its own: a topic that no other call uses, where one send! meets one recv!. All replies on a
connection have the same size and the lane's number is one byte at the same place in each, so
replies are counted, told apart and compared by slicing alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

from skywalker.wire import junction as wire
from skywalker.wire import values

MAX_LANES: Final = 256
"""Lanes of one connection: the number is one byte."""

MIN_VALUE_BYTES: Final = 8
"""Bytes of the shortest value: it names its pair and its lane, so that no other value can pass for it."""

CALL_TIMEOUT_MS: Final = 60_000

_FIRST_ID: Final = 0x0100
"""Ids from here on have three bytes, as those of a client that has been running for a while, and end in the lane."""


@dataclasses.dataclass(frozen=True, slots=True)
class Script:
    """What one connection says and must hear, by lane.

    In every reply the byte at `lane_at` is the number of its lane. A connection that `answers` begins by
    listening: its calls are its answers to what it hears. One that does not `meet` is answered by the server
    itself, whatever the other side does.
    """

    calls: Sequence[bytes]
    replies: Sequence[bytes]
    lane_at: int
    opening: bytes = b""  # said once, before all calls
    opened: bytes = b""  # a pattern of what is then heard up to its end
    ping: bytes = b""  # may be heard between any two replies
    pong: bytes = b""  # what is then said
    answers: bool = False
    meets: bool = True
    in_step: bool = False  # whether a call is made again only when the other side, too, is answered

    @property
    def reply_bytes(self) -> int:
        """The size of every reply."""
        return len(self.replies[0])


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """The scripts of a connection that receives and of one that sends, `in_flight` lanes each.

    `name` keeps its topics apart from those of other runs on the same node.
    """

    receiver: Script
    sender: Script

    @classmethod
    def encode(cls, name: str, number: int, in_flight: int, value_bytes: int) -> Pair:
        """Encode the calls of pair `number`, with values of `value_bytes`. Raises ValueError where they don't fit."""
        timeout = values.pack(CALL_TIMEOUT_MS)
        ids = [values.pack(_FIRST_ID + lane) for lane in range(in_flight)]
        topics = [values.pack(f"{name}/{number}/{lane:03}") for lane in range(in_flight)]
        sent = list(map(values.pack, values_of(number, in_flight, value_bytes)))
        lane_at = len(wire.reply(wire.SEND, ids[0], b"")) - 1
        receiver = Script(
            [wire.frame(wire.RECV, id, timeout, topic) for id, topic in zip(ids, topics, strict=True)],
            [wire.reply(wire.RECV, id, value) for id, value in zip(ids, sent, strict=True)],
            lane_at,
        )
        sender = Script(
            [wire.frame(wire.SEND, id, timeout, *rest) for id, *rest in zip(ids, topics, sent, strict=True)],
            [wire.reply(wire.SEND, id, wire.TRUE) for id in ids],
            lane_at,
        )
        return cls(receiver, sender)


def values_of(number: int, in_flight: int, value_bytes: int) -> list[bytes]:
    """Return the value of every lane of pair `number`; its eighth byte is the lane's. Raises ValueError as encode()."""
    if not 1 <= in_flight <= MAX_LANES:
        raise ValueError(f"{in_flight} calls in flight on a connection, allowed are 1 to {MAX_LANES}")
    if value_bytes < MIN_VALUE_BYTES:
        raise ValueError(f"values of {value_bytes} bytes, the shortest are of {MIN_VALUE_BYTES}")
    labels = [number.to_bytes(4, "big") + lane.to_bytes(4, "big") for lane in range(in_flight)]
    return [label.ljust(value_bytes, b".") for label in labels]


class OnlyLane(Sequence[bytes]):
    """The calls or the replies of a connection with one lane, whose replies name none: every byte stands for it."""

    def __init__(self, item: bytes) -> None:
        self._item = item

    def __len__(self) -> int:
        return 1

    def __getitem__(self, lane: Any) -> Any:
        return self._item

    def __iter__(self) -> Iterator[bytes]:
        yield self._item
