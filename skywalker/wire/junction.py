"""The MessagePack dialect, port 3443: its methods, replies and errors, to bytes and back.

Requests are `[method, id, argument...]` and replies `[method, id, result]`, each in a frame.
Encoded parts are `bytes` throughout; only errors, which are rare, are built from Python values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

import msgpack

from skywalker.errors import RequestError, TooLarge
from skywalker.limits import MAX_FRAME
from skywalker.wire import values

RECV: Final = values.pack(":recv!")
SEND: Final = values.pack(":send!")
TAKE: Final = values.pack(":take!")
WILL: Final = values.pack(":will!")
TOKENS: Final = values.pack(":tokens")
TOPIC: Final = values.pack(":topic")
HELLO: Final = values.pack(":hello")
PING: Final = values.pack(":ping")
CANCEL: Final = values.pack(":cancel")
ACK: Final = values.pack(":ack")
NODES: Final = values.pack(":nodes")
JOIN: Final = values.pack(":join")
RING: Final = values.pack(":ring")
CHALLENGE: Final = values.pack(":challenge")
PROOF: Final = values.pack(":proof")
PEER: Final = values.pack(":peer")
SUBSCRIBE: Final = values.pack(":subscribe")
UNSUBSCRIBE: Final = values.pack(":unsubscribe")
MESSAGE: Final = values.pack(":message")
ERROR: Final = values.pack(":error")

NIL: Final = b"\xc0"
FALSE: Final = b"\xc2"
TRUE: Final = b"\xc3"

TIMEOUT_TYPE: Final = 0x54
ERROR_TYPE: Final = 0x45
_TIMEOUT_PAYLOAD: Final = b"\0"
_RESERVED: Final = (ERROR_TYPE, TIMEOUT_TYPE)
_TYPE_AT: Final = {0xC7: 2, 0xC8: 3, 0xC9: 5}
"""By first byte, where extensions that say their length have their type; others have it right behind that byte."""

TIMED_OUT: Final = b"\xd4\x54\x00"
"""The result that says "timed out" in the current dialect."""

CLOJURE_TIMED_OUT: Final = b"\xc7\x12\x03\xb1skywalker/timeout"
"""The timeout value that the original's first-dialect client names: a Clojure keyword."""


def frame(*elements: bytes) -> bytes:
    """Return the frame of one array of encoded elements, fewer than 16. Raises TooLarge if it does not fit."""
    body = b"".join(elements)
    size = len(body) + 1
    if size > MAX_FRAME:
        raise TooLarge(f"frame of {size} bytes, limit is {MAX_FRAME}", {"size": size, "limit": MAX_FRAME})
    return size.to_bytes(2, "big") + bytes((0x90 | len(elements),)) + body


def error_frame(method: bytes, id: bytes, error: RequestError) -> bytes:
    """Return the reply that says that the call `id` failed with `error`."""
    payload = values.pack([error.code, str(error), dict(error.details)])
    return frame(method, id, msgpack.packb(msgpack.ExtType(ERROR_TYPE, payload)))


_RECEIVERS: Final = b"\x85" + values.pack("receivers")
_TAKERS: Final = values.pack("takers")
_SENDERS: Final = values.pack("senders")
_SUBSCRIBERS: Final = values.pack("subscribers")
_AGE: Final = values.pack("age")


def topic_info(receivers: int, takers: Mapping[bytes, int], senders: int, subscribers: int, age_ms: int) -> bytes:
    """Return the result of a :topic: who waits there, and for how many milliseconds the oldest of them."""
    parts = [_RECEIVERS, _number(receivers), _TAKERS, b"\xde", len(takers).to_bytes(2, "big")]
    for group, count in takers.items():
        parts += (group, _number(count))
    parts += (_SENDERS, _number(senders), _SUBSCRIBERS, _number(subscribers), _AGE, _number(age_ms))
    return b"".join(parts)


def topic_answer(info: bytes) -> Any:
    """Return the result of a :topic as Python has it, whatever groups there are. Raises ValueError for what is none.

    In a group that no dict could have as a key, lists are tuples and maps are tuples of pairs; those that Python has no
    form for at all, as a timestamp of a wrong length, are counted under None.
    """
    with contextlib.suppress(ValueError):
        return values.unpack(info)
    begin, end, groups = _groups(info)
    takers: dict[Any, int] = {}
    for group, count in groups:
        try:
            name = values.unpack_frozen(group)
        except ValueError:
            name = None
        takers[name] = takers.get(name, 0) + count
    return {**values.unpack(info[:begin] + _NO_GROUPS + info[end:]), "takers": takers}


def without_groups(info: bytes) -> bytes:
    """Return the result of a :topic with all takers under nil. Raises ValueError for what is none."""
    begin, end, groups = _groups(info)
    takers = sum(count for _, count in groups)
    told = b"\x81" + NIL + _number(takers) if takers else _NO_GROUPS
    return info[:begin] + told + info[end:]


_NO_GROUPS: Final = b"\x80"


def _groups(info: bytes) -> tuple[int, int, list[tuple[bytes, int]]]:
    """Return the groups in the result of a :topic, encoded, each with its count, and where their map begins and ends.

    Raises ValueError for what is none.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=len(info))
    unpacker.feed(info)
    groups = []
    try:
        unpacker.read_map_header()
        while unpacker.unpack() != "takers":
            unpacker.skip()
        begin = unpacker.tell()
        for _ in range(unpacker.read_map_header()):
            at = unpacker.tell()
            unpacker.skip()  # any value may be a group, also one that Python has no key for
            group, count = info[at : unpacker.tell()], unpacker.unpack()
            groups.append((group, 0 + count))
    except (msgpack.UnpackException, TypeError, ValueError) as error:
        raise ValueError(f"it does not say who waits: {error!r}") from error
    return begin, unpacker.tell(), groups


_NUMBERS: Final = [bytes((number,)) for number in range(128)]


def _number(number: int) -> bytes:
    return _NUMBERS[number] if number < 128 else values.pack(number)


def error_from(payload: bytes) -> RequestError:
    """Return the exception that an error reply's payload stands for. Raises ValueError if it is none."""
    match values.unpack(payload):
        case [str(code), str(message), {**details}]:
            return RequestError.from_wire(code, message, details)
    raise ValueError("an error reply does not hold a code, a message and a map")


def refusal(result: Any) -> RequestError | None:
    """Return the error that a decoded result is, None if it is a value."""
    if isinstance(result, msgpack.ExtType) and result.code == ERROR_TYPE:
        try:
            return error_from(result.data)
        except ValueError:
            pass  # some client's value: a node makes no such errors
    return None


def is_reserved(value: bytes) -> bool:
    """Whether an encoded value is an extension as a node's errors and timeouts are, so that nobody could tell it."""
    head = value[0]
    if head < 0xC7 or head > 0xD8 or 0xC9 < head < 0xD4:
        return False
    return value[_TYPE_AT.get(head, 1)] in _RESERVED


def is_timeout(result: Any) -> bool:
    """Whether a decoded result, or a value, is the current dialect's word for "timed out"."""
    return isinstance(result, msgpack.ExtType) and result.code == TIMEOUT_TYPE and result.data == _TIMEOUT_PAYLOAD
