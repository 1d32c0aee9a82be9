"""The frames of a load, encoded once: what each lane calls, and what it should be answered.

All values sent to a topic are the same, so that a receiver's right reply is known however many
lanes share its topic.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final

from bench.load.plan import Load
from skywalker.limits import MAX_TIMEOUT_MS
from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split

_FIRST_ID: Final = 0x0100
"""Ids from here on have three bytes, as those of a client that has been running for a while, and end in the lane."""

LANE_AT: Final = len(wire.reply(wire.SEND, values.pack(_FIRST_ID), b"")) - 1
"""Where a reply names its lane; the two methods are of one length."""


@dataclasses.dataclass(frozen=True, slots=True)
class Script:
    """What one connection says and should hear, by lane."""

    calls: list[bytes]
    replies: list[bytes]  # all of one size
    topics: list[bytes]  # canonical

    def call_after(self, lane: int, seconds: float) -> bytes:
        """Return the call of a lane with the time that is left of its own after so many seconds."""
        (call,), _ = split(self.calls[lane])
        assert not isinstance(call, BadFrame)
        method, id, timeout, *rest = call
        left = max(0, values.unpack(timeout) - round(seconds * 1000))
        return wire.frame(method, id, values.pack(left), *rest)

    def owned(self, ring: Ring[int] | None, worker: int | None) -> bytes:
        """Return the lanes whose topics `worker` owns; none where that is not known."""
        if ring is None or worker is None:
            return b""
        return bytes(lane for lane, topic in enumerate(self.topics) if ring.owner(token_of(topic)) == worker)


def lane_of(id: bytes) -> int | None:
    """Return the lane that an encoded id belongs to, None if it is none of ours."""
    return id[2] if len(id) == 3 and id[:2] == b"\xcd\x01" else None


def scripts_of(load: Load, pair: int, ring: Ring[int] | None, owner: int | None) -> tuple[Script, Script]:
    """Return what the receiver and the sender of a pair say and hear.

    With an `owner` the topics are named so that this worker owns them.
    """
    named = [wire.CLOJURE_TIMED_OUT] if load.dialect == "first" else []
    # A receiver that nobody calls for a while has not failed, so it waits for as long as it may.
    recv_wait = [values.pack(MAX_TIMEOUT_MS), *named]
    send_wait = [values.pack(round(load.timeout_s * 1000)), *named]
    numbers = load.topics_of(pair)
    topics = {number: _topic(load.prefix, number, ring, owner) for number in numbers[: load.in_flight]}
    receiver, sender = Script([], [], []), Script([], [], [])
    for lane in range(load.in_flight):
        number = numbers[lane % len(numbers)]
        topic = topics[number]
        value = values.pack(number.to_bytes(8, "big").ljust(load.value_bytes, b"."))
        id = values.pack(_FIRST_ID + lane)
        receiver.calls.append(wire.frame(wire.RECV, id, *recv_wait, topic))
        receiver.replies.append(wire.reply(wire.RECV, id, value))
        sender.calls.append(wire.frame(wire.SEND, id, *send_wait, topic, value))
        sender.replies.append(wire.reply(wire.SEND, id, wire.TRUE))
        receiver.topics.append(topic)
        sender.topics.append(topic)
    return receiver, sender


def _topic(prefix: str, number: int, ring: Ring[int] | None, owner: int | None) -> bytes:
    if ring is None or owner is None:
        return values.pack(f"{prefix}/{number}")
    names = (values.pack(f"{prefix}/{number}/{attempt}") for attempt in itertools.count())
    return next(name for name in names if ring.owner(token_of(name)) == owner)
