"""The calls that a receiver makes over and over: encoded once, each under an id of its own."""

from __future__ import annotations

import dataclasses
from typing import Final

from skywalker.pipeline.tables.reading import Reading
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.junction import frame

CALL_MS: Final = 60_000
"""Milliseconds that a call waits before it is made again."""


@dataclasses.dataclass(slots=True)
class Slot:
    """A call that is made over and over under one id, which costs no encoding."""

    topic: int
    waits: bool  # rather than to ask who is there now
    call: bytes
    ack: bytes  # says that what came for it is safe
    again: bytes  # both: first the one, then the next call


def slots_of(reading: Reading, depth: int) -> dict[bytes, Slot]:
    """Return by id the calls to make: of each topic so many, or one subscription."""
    slots: dict[bytes, Slot] = {}
    if reading.method == "subscribe":
        depth = 1
    for index, name in enumerate(reading.topics):
        topic = values.pack(name)
        for turn in range(depth):
            id = values.pack(len(slots))
            waits = turn == 0 or reading.method == "take"
            timeout = values.pack(CALL_MS if waits else 0)
            if reading.method == "subscribe":
                call = frame(wire.SUBSCRIBE, id, topic)
            elif reading.method == "take":
                call = frame(wire.TAKE, id, timeout, topic, values.pack(reading.group))
            else:
                call = frame(wire.RECV, id, timeout, topic)
            ack = frame(wire.ACK, id)
            slots[id] = Slot(index, waits, call, ack, ack + call)
    return slots
