"""The frames of a benchmark, encoded once: what each lane calls, and what it must be answered.

A send! reaches every recv! that waits on its topic, so that each call in flight has a *lane* of
its own: a topic that no other call uses, where one send! meets one recv!. All replies on a
connection have the same size and the lane's number is one byte at the same place in each, so
replies are counted, told apart and compared by slicing alone.
"""

from __future__ import annotations

import dataclasses
from typing import Final

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
    """What one connection says and must hear, by lane."""

    calls: list[bytes]
    replies: list[bytes]

    @property
    def reply_bytes(self) -> int:
        """The size of every reply."""
        return len(self.replies[0])

    @property
    def lane_at(self) -> int:
        """Where in a reply the byte is that names the lane."""
        return len(wire.reply(wire.SEND, _id(0), b"")) - 1


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
        if not 1 <= in_flight <= MAX_LANES:
            raise ValueError(f"{in_flight} calls in flight on a connection, allowed are 1 to {MAX_LANES}")
        if value_bytes < MIN_VALUE_BYTES:
            raise ValueError(f"values of {value_bytes} bytes, the shortest are of {MIN_VALUE_BYTES}")
        timeout = values.pack(CALL_TIMEOUT_MS)
        receiver, sender = Script([], []), Script([], [])
        for lane in range(in_flight):
            topic = values.pack(f"{name}/{number}/{lane}")
            label = number.to_bytes(4, "big") + lane.to_bytes(4, "big")
            value = values.pack(label.ljust(value_bytes, b"."))
            receiver.calls.append(wire.frame(wire.RECV, _id(lane), timeout, topic))
            receiver.replies.append(wire.reply(wire.RECV, _id(lane), value))
            sender.calls.append(wire.frame(wire.SEND, _id(lane), timeout, topic, value))
            sender.replies.append(wire.reply(wire.SEND, _id(lane), wire.TRUE))
        return cls(receiver, sender)


def _id(lane: int) -> bytes:
    return values.pack(_FIRST_ID + lane)
