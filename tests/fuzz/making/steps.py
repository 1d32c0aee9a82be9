"""What seeds are put together of: frames, and the operations of talks.py."""

from __future__ import annotations

from typing import Any

import msgpack

from tests.fuzz.talks import LIMITS, PAUSES_S
from tests.wire.streams import framed

Seeds = dict[str, bytes]
"""Inputs of one target, by the names of their files."""


def packed(*elements: Any) -> bytes:
    """Return an encoded array."""
    body: bytes = msgpack.packb(elements)
    return body


def frame(*elements: Any) -> bytes:
    """Return the frame of one call."""
    return framed(packed(*elements))


# Operations of talks.py.


def talk(*operations: bytes, limits: int = 0, step: int = 3) -> bytes:
    """Return an input: the limits, the bytes of a piece, and what happens."""
    return bytes((limits + len(LIMITS) * step,)) + b"".join(operations)


def calls(who: int, *elements: Any) -> bytes:
    """A client says a short frame."""
    body = packed(*elements)
    return bytes((who, len(body))) + body


def says(who: int, data: bytes) -> bytes:
    """A client says some bytes."""
    return bytes((2 << 5 | who, len(data))) + data


def later(seconds: float) -> bytes:
    """Time passes."""
    return bytes((3 << 5, PAUSES_S.index(seconds)))


def reads(who: int, room: int) -> bytes:
    """A client reads so many bytes, and then no more; 255 is all."""
    return bytes((4 << 5 | who, room))


def leaves(who: int) -> bytes:
    """A client goes."""
    return bytes((5 << 5 | who, 1))


def again(who: int, times: int) -> bytes:
    """A client says what it said last."""
    return bytes((6 << 5 | who, times))


def long_call(who: int, length: int, *elements: Any) -> bytes:
    """A client says a frame whose last element is 16 times so many letters."""
    body = packed(*elements[:-1], None)[:-1] + b"\xda" + (16 * length).to_bytes(2, "big")
    # A zero among the length's own bytes would be taken for the place of the letters.
    return bytes((7 << 5 | who, 0x46, length, len(body) + 1)) + body + b"\0"


def link(*elements: Any) -> bytes:
    """Return one message between workers."""
    body = packed(*elements)
    return len(body).to_bytes(4, "big") + body


def spoken(who: int, message: bytes) -> bytes:
    """A client of pub/sub says a message."""
    return bytes((who, len(message))) + message
