"""Reading a node's replies: which of them are its own words, and whose they are when they make no sense."""

from __future__ import annotations

from typing import Any, Final

import msgpack

from skywalker.errors import RequestError
from skywalker.wire import values
from skywalker.wire.frames import BadFrame, split
from skywalker.wire.junction import ERROR_TYPE, TIMEOUT_TYPE, error_from

UNDECODABLE: Final = (ValueError, TypeError, OverflowError)
"""What decoding raises where Python has no form for a value, such as a map whose key is a list."""

_TIMEOUT_PAYLOAD: Final = b"\0"


def is_timeout(result: Any) -> bool:
    """Whether a result, or a value, is the current dialect's word for "timed out"."""
    return isinstance(result, msgpack.ExtType) and result.code == TIMEOUT_TYPE and result.data == _TIMEOUT_PAYLOAD


def refusal(result: Any) -> RequestError | None:
    """Return the error that a result is, None if it is a value."""
    if isinstance(result, msgpack.ExtType) and result.code == ERROR_TYPE:
        try:
            return error_from(result.data)
        except UNDECODABLE:
            pass  # some client's value: a node makes no such errors
    return None


def id_in(reply: bytes) -> int | None:
    """Return the id in a frame that could not be decoded as a whole; None if it has none, or is no reply.

    Raises ValueError where it is no array of three values.
    """
    elements = split(reply)[0][0]
    if isinstance(elements, BadFrame) or len(elements) != 3:
        raise ValueError("the node sent what is no MessagePack array of three")
    head = elements[1][0]
    is_integer = head < 0x80 or 0xCC <= head <= 0xD3
    return int(values.unpack(elements[1])) if is_integer else None
