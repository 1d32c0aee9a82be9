"""Python values to MessagePack bytes and back, and the canonical form of topics.

Two topics are the same if their canonical bytes are: shortest integer, string, container
and extension headers; `str` and `bin` distinct, floats and the order of maps kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgpack

from skywalker.errors import BadTimeout, BadTopic, LocalProtocolError
from skywalker.limits import MAX_TIMEOUT_MS, MAX_TOPIC

# By first byte, whether that already is the canonical header: fixint, fixstr, nil, booleans, negative fixint.
_CANONICAL_AS_IT_IS: Final = bytes(
    head < 0x80 or 0xA0 <= head <= 0xC0 or head in (0xC2, 0xC3) or head >= 0xE0 for head in range(256)
)
# Integers that follow their first byte: how many bytes they have.
_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}


class _Family(NamedTuple):
    """Values with a length or a count in their header, which has a short form for some and a long one for all."""

    short: Mapping[int, bytes]  # by length, the whole header
    long: Mapping[int, int]  # by first byte, the bytes of the length that follows
    payload: int | None  # bytes that come after the header besides so many; None if so many values come, or pairs

    def header(self, length: int) -> bytes:
        """Return the shortest header for `length`, which fits in the longest."""
        if length in self.short:
            return self.short[length]
        head, width = next((head, width) for head, width in self.long.items() if length < 1 << 8 * width)
        return bytes((head,)) + length.to_bytes(width, "big")


_STRINGS: Final = _Family({n: bytes((0xA0 | n,)) for n in range(32)}, {0xD9: 1, 0xDA: 2, 0xDB: 4}, 0)
_BINARIES: Final = _Family({}, {0xC4: 1, 0xC5: 2, 0xC6: 4}, 0)
_EXTENSIONS: Final = _Family({1 << n: bytes((0xD4 + n,)) for n in range(5)}, {0xC7: 1, 0xC8: 2, 0xC9: 4}, 1)
_ARRAYS: Final = _Family({n: bytes((0x90 | n,)) for n in range(16)}, {0xDC: 2, 0xDD: 4}, None)
_MAPS: Final = _Family({n: bytes((0x80 | n,)) for n in range(16)}, {0xDE: 2, 0xDF: 4}, None)
_FAMILIES: Final = {
    head: family for family in (_STRINGS, _BINARIES, _EXTENSIONS, _ARRAYS, _MAPS) for head in family.long
}
# The others have one form only; bytes that follow the first.
_FLOATS_AND_FIXEXTS: Final = {0xCA: 4, 0xCB: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}


def pack(value: Any) -> bytes:
    """Encode `value`; tuples become arrays. Raises LocalProtocolError if it has no MessagePack form."""
    try:
        data: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalProtocolError(f"{type(value).__name__} cannot be sent as MessagePack: {error}") from error
    return data


def unpack(data: bytes | memoryview, *, text_keys: bool = False) -> Any:
    """Decode one value. Raises ValueError where Python has no form for it, a list as a map's key for one.

    With `text_keys`, also where a map has a key that is neither a string nor binary. Only these have hashes that
    nobody can know: thousands of others may be made to have one, and take a time that grows with their square.
    """
    try:
        return msgpack.unpackb(data, strict_map_key=text_keys, unicode_errors="surrogateescape")
    except TypeError as error:
        raise ValueError(f"the value has no form in Python: {error}") from error


def canonical(data: bytes) -> bytes:
    """Return the canonical form of one well-formed encoded value.

    Containers hold counts, not sizes, so one pass over the headers does it, without recursion.
    """
    return _canonical(data, len(data))


def _canonical(data: bytes, most: int) -> bytes:
    """Return the same; where it has more than `most` bytes, more than those of its beginning."""
    if _CANONICAL_AS_IT_IS[data[0]] or (data[0] == 0xD9 and data[1] >= 32):
        return data
    out: list[bytes] = []
    pos = 0
    values = 0  # each has a byte at least
    while pos < len(data) and values <= most:
        values += 1
        head = data[pos]
        begin = pos
        pos += 1
        if width := _UNSIGNED.get(head) or _SIGNED.get(head):
            pos += width
            out.append(_integer(int.from_bytes(data[begin + 1 : pos], "big", signed=head in _SIGNED)))
        elif family := _FAMILIES.get(head):
            begin = pos + family.long[head]
            length = int.from_bytes(data[pos:begin], "big")
            pos = begin if family.payload is None else begin + family.payload + length
            out += (family.header(length), data[begin:pos])
        else:
            # fixmap and fixarray have nothing but their first byte; what they hold comes next.
            pos += head - 0xA0 if 0xA0 <= head < 0xC0 else _FLOATS_AND_FIXEXTS.get(head, 0)
            out.append(data[begin:pos])
    return b"".join(out)


def _integer(number: int) -> bytes:
    if -32 <= number < 128:
        return bytes((number & 0xFF,))
    widths = _SIGNED if number < 0 else _UNSIGNED
    # A negative number and its complement have the same bits but for the sign, which takes one more.
    bits = (~number).bit_length() + 1 if number < 0 else number.bit_length()
    head, width = next((head, width) for head, width in widths.items() if bits <= 8 * width)
    return bytes((head,)) + number.to_bytes(width, "big", signed=number < 0)


def topic_bytes(data: bytes) -> bytes:
    """Return the canonical form of an encoded topic or group. Raises BadTopic if it is over MAX_TOPIC bytes."""
    topic = _canonical(data, MAX_TOPIC)
    if len(topic) > MAX_TOPIC:
        size = max(len(topic), len(data))  # as it came: not all of it was looked at
        raise BadTopic(f"topic of {size} bytes, limit is {MAX_TOPIC}", {"size": size, "limit": MAX_TOPIC})
    return topic


def timeout_seconds(data: bytes) -> float:
    """Return an encoded timeout, whole or fractional milliseconds, as seconds.

    A fraction is rounded up. Raises BadTimeout unless it is a number from 0 to MAX_TIMEOUT_MS.
    """
    head = data[0]
    if head < 0x80:
        whole = head
    elif 0xCC <= head <= 0xCE:
        whole = 0
        for at in range(1, len(data)):
            whole = whole << 8 | data[at]
    else:
        whole = _unusual_timeout(data)
    if whole > MAX_TIMEOUT_MS:
        raise _bad_timeout(whole)
    return whole / 1000


def _unusual_timeout(data: bytes) -> int:
    """Return the milliseconds of a timeout that is no short unsigned integer, rounded up."""
    # The first byte tells numbers from the rest, so that a huge value is not decoded to be refused.
    head = data[0]
    if not (head >= 0xE0 or head in (0xCA, 0xCB) or head in _UNSIGNED or head in _SIGNED):
        raise BadTimeout("the timeout is no number of milliseconds")
    milliseconds: float = unpack(data)
    # Also refuses a NaN, which compares as neither.
    if not 0 <= milliseconds <= MAX_TIMEOUT_MS:
        raise _bad_timeout(milliseconds)
    return math.ceil(milliseconds)


def _bad_timeout(milliseconds: float) -> BadTimeout:
    return BadTimeout(f"timeout of {milliseconds} ms, allowed are 0 to {MAX_TIMEOUT_MS}", {"limit": MAX_TIMEOUT_MS})
