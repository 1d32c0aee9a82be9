"""Python values to MessagePack bytes and back, and the canonical form of topics.

Two topics are the same if their canonical bytes are: shortest integer, string, container
and extension headers; `str` and `bin` distinct, floats and the order of maps kept as they are.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgpack

from skywalker.errors import BadTimeout, BadTopic, LocalProtocolError
from skywalker.limits import MAX_TIMEOUT_MS, MAX_TOPIC

# By first byte, whether that already is the canonical header: fixint, fixstr, nil, booleans, negative fixint.
_CANONICAL_AS_IT_IS: Final = bytes(
    head < 0x80 or 0xA0 <= head <= 0xC0 or head in (0xC2, 0xC3) or head >= 0xE0 for head in range(256)
)
# By first byte, what a value takes that has no other form; of what holds others, and has it in that byte, the byte.
_TAKEN: Final = bytes(
    [1] * 0xA0  # fixint, fixmap, fixarray
    + [1 + n for n in range(0x20)]  # fixstr
    + [1] * 4  # nil, never used, false, true
    + [0] * 6  # bin 8/16/32, ext 8/16/32
    + [5, 9]  # float 32/64
    + [0] * 8  # uint, int
    + [3, 4, 6, 10, 18]  # fixext 1/2/4/8/16
    + [0] * 7  # str 8/16/32, array 16/32, map 16/32
    + [1] * 0x20  # negative fixint
)
# Of the others, bytes of the number that follows: the value of an integer, else a length or a count.
_WIDTHS: Final = bytes(
    [0] * 0xC4 + [1, 2, 4] * 2 + [0] * 2 + [1, 2, 4, 8] * 2 + [0] * 5 + [1, 2, 4] + [2, 4] * 2 + [0] * 0x20
)

_BINARY: Final = 0xC4
_EXTENSION: Final = 0xC7
_UNSIGNED: Final = 0xCC
_SIGNED: Final = 0xD0
_STRING: Final = 0xD9
_ARRAY: Final = 0xDC
_MAP: Final = 0xDE

_FIXEXTS: Final = {1 << n: 0xD4 + n for n in range(5)}
_ONES: Final = {width: (1 << 8 * width) - 1 for width in (1, 2, 4, 8)}
_BYTES: Final = [bytes((number,)) for number in range(256)]


def pack(value: Any) -> bytes:
    """Encode `value`; tuples become arrays. Raises LocalProtocolError if it has no MessagePack form."""
    try:
        data: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError, RecursionError, BufferError) as error:
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
        raise ValueError(f"a map has a key that Python cannot have: {error}") from error


def unpack_frozen(data: bytes) -> Any:
    """Decode one value, with lists as tuples and maps as tuples of pairs, so that it may be a key.

    Raises ValueError where Python has no form for it.
    """
    return msgpack.unpackb(
        data, use_list=False, object_pairs_hook=tuple, strict_map_key=False, unicode_errors="surrogateescape"
    )


def canonical(data: bytes) -> bytes:
    """Return the canonical form of one well-formed encoded value.

    Containers hold counts, not sizes, so one pass over the headers does it, without recursion.
    """
    return _canonical(data, len(data))


def _canonical(data: bytes, most: int) -> bytes:
    """Return the same; where it has more than `most` bytes, more than those of its beginning."""
    view = data  # compiled, a pointer to its bytes
    if _CANONICAL_AS_IT_IS[view[0]] or (view[0] == _STRING and view[1] >= 32):
        return data
    size = len(data)
    out: list[bytes] = []
    pos = begin = 0  # what is from `begin` on may stay as it is
    values = 0  # each has a byte at least
    while pos < size and values <= most:
        values += 1
        head = view[pos]
        if _TAKEN[head]:
            pos += _TAKEN[head]
            continue
        end = min(pos + 1 + _WIDTHS[head], size)
        number = 0
        for at in range(pos + 1, end):
            number = number << 8 | view[at]
        header = _header(head, end - pos - 1, number)
        if header[0] != head:
            out += (view[begin:pos], header)
            begin = end
        pos = end
        if head < _UNSIGNED or _STRING <= head < _ARRAY:
            pos += number + (_EXTENSION <= head < _UNSIGNED)  # the type of an extension is one byte more
    if not out:
        return data
    out.append(data[begin:pos])
    return b"".join(out)


def _header(head: int, width: int, number: int) -> bytes:
    """Return the shortest header that says the same as first byte `head` and the number that follows it."""
    if head >= _MAP:
        first, short, widths = _MAP, 0x80 | number if number < 16 else -1, 2
    elif head >= _ARRAY:
        first, short, widths = _ARRAY, 0x90 | number if number < 16 else -1, 2
    elif head >= _STRING:
        first, short, widths = _STRING, 0xA0 | number if number < 32 else -1, 1
    elif head >= _UNSIGNED:
        if head >= _SIGNED and number >> (8 * width - 1):
            return _negative(width, number)
        first, short, widths = _UNSIGNED, number if number < 128 else -1, 1
    elif head >= _EXTENSION:
        first, short, widths = _EXTENSION, _FIXEXTS.get(number, -1) if number <= 16 else -1, 1
    else:
        first, short, widths = _BINARY, -1, 1
    if short >= 0:
        return _BYTES[short]
    while widths < width and number >> (8 * widths):
        widths *= 2
        first += 1
    return _BYTES[first] + number.to_bytes(widths, "big")


def _negative(width: int, number: int) -> bytes:
    """Return the shortest form of a negative integer, of which these are the bytes."""
    number = number ^ _ONES[width]  # of which it is the complement
    if number < 32:
        return _BYTES[0xFF - number]
    widths, first = 1, _SIGNED
    while widths < width and number >> (8 * widths - 1):
        widths *= 2
        first += 1
    return _BYTES[first] + (number ^ _ONES[widths]).to_bytes(widths, "big")


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


def nearest_timeout(data: bytes) -> float:
    """Return an encoded timeout that is not allowed as the nearest one that is, in seconds.

    Raises BadTimeout if it is no number.
    """
    head = data[0]
    if not (head >= 0xE0 or 0xCA <= head <= 0xD3):
        raise _no_timeout()
    milliseconds: float = unpack(data)
    if math.isnan(milliseconds):
        raise _no_timeout()
    return 0.0 if milliseconds < 0 else MAX_TIMEOUT_MS / 1000


def _unusual_timeout(data: bytes) -> int:
    """Return the milliseconds of a timeout that is no short unsigned integer, rounded up."""
    # The first byte tells numbers from the rest, so that a huge value is not decoded to be refused.
    head = data[0]
    if not (head >= 0xE0 or 0xCA <= head <= 0xD3):
        raise _no_timeout()
    milliseconds: float = unpack(data)
    # Also refuses a NaN, which compares as neither.
    if not 0 <= milliseconds <= MAX_TIMEOUT_MS:
        raise _bad_timeout(milliseconds)
    return math.ceil(milliseconds)


def _no_timeout() -> BadTimeout:
    return BadTimeout("the timeout is not a number of milliseconds")


def _bad_timeout(milliseconds: float) -> BadTimeout:
    return BadTimeout(f"timeout of {milliseconds} ms, allowed are 0 to {MAX_TIMEOUT_MS}", {"limit": MAX_TIMEOUT_MS})
