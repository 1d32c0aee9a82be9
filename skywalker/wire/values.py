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

# A first byte that already is its canonical header: fixint, fixstr, nil, booleans, negative fixint.
_CANONICAL_AS_IT_IS: Final = frozenset((*range(0x80), *range(0xA0, 0xC1), 0xC2, 0xC3, *range(0xE0, 0x100)))
# For every family whose header may be longer than needed: the first byte, and the bytes of its number or length.
_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_STRINGS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BINARIES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
# The others have one form only; bytes that follow the first.
_FLOATS_AND_FIXEXTS: Final = {0xCA: 4, 0xCB: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}


def pack(value: Any) -> bytes:
    """Encode `value`; tuples become arrays. Raises LocalProtocolError if it has no MessagePack form."""
    try:
        data: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalProtocolError(f"{type(value).__name__} cannot be sent as MessagePack: {error}") from error
    return data


def unpack(data: bytes | memoryview) -> Any:
    """Decode one value.

    Raises ValueError or TypeError where Python has no form for it, a list as a map's key for one.
    """
    return msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")


def canonical(data: bytes) -> bytes:
    """Return the canonical form of one well-formed encoded value.

    Containers hold counts, not sizes, so one pass over the headers does it, without recursion.
    """
    if data[0] in _CANONICAL_AS_IT_IS:
        return data
    packer = msgpack.Packer()
    out: list[bytes] = []
    pos = 0
    while pos < len(data):
        head = data[pos]
        begin = pos
        pos += 1
        if width := _UNSIGNED.get(head) or _SIGNED.get(head):
            pos += width
            out.append(packer.pack(int.from_bytes(data[begin + 1 : pos], "big", signed=head in _SIGNED)))
        elif width := _STRINGS.get(head):
            text, pos = _take(data, pos, width)
            # Escaped and unescaped again: a topic need not be UTF-8.
            out.append(pack(text.decode("utf-8", "surrogateescape")))
        elif width := _BINARIES.get(head):
            blob, pos = _take(data, pos, width)
            out.append(packer.pack(blob))
        elif width := _EXTENSIONS.get(head):
            kind = int.from_bytes(data[pos + width : pos + width + 1], "big", signed=True)
            length = int.from_bytes(data[pos : pos + width], "big")
            pos += width + 1 + length
            out.append(packer.pack_ext_type(kind, data[pos - length : pos]))
        elif width := _ARRAYS.get(head):
            out.append(packer.pack_array_header(int.from_bytes(data[pos : pos + width], "big")))
            pos += width
        elif width := _MAPS.get(head):
            out.append(packer.pack_map_header(int.from_bytes(data[pos : pos + width], "big")))
            pos += width
        else:
            # fixmap and fixarray have nothing but their first byte; what they hold comes next.
            pos += head - 0xA0 if 0xA0 <= head < 0xC0 else _FLOATS_AND_FIXEXTS.get(head, 0)
            out.append(data[begin:pos])
    return b"".join(out)


def _take(data: bytes, pos: int, width: int) -> tuple[bytes, int]:
    begin = pos + width
    end = begin + int.from_bytes(data[pos:begin], "big")
    return data[begin:end], end


def topic_bytes(data: bytes) -> bytes:
    """Return the canonical form of an encoded topic or group. Raises BadTopic if it is over MAX_TOPIC bytes."""
    topic = canonical(data)
    if len(topic) > MAX_TOPIC:
        raise BadTopic(f"topic of {len(topic)} bytes, limit is {MAX_TOPIC}", {"size": len(topic), "limit": MAX_TOPIC})
    return topic


def timeout_seconds(data: bytes) -> float:
    """Return an encoded timeout, whole or fractional milliseconds, as seconds.

    A fraction is rounded up. Raises BadTimeout unless it is a number from 0 to MAX_TIMEOUT_MS.
    """
    # A head alone tells numbers from the rest, so that a huge value is not decoded to be refused.
    head = data[0]
    if not (head < 0x80 or head in (0xCA, 0xCB) or head in _UNSIGNED or head in _SIGNED):
        raise BadTimeout("the timeout is no number of milliseconds")
    milliseconds = unpack(data)
    # Also refuses a NaN, which compares as neither.
    if not 0 <= milliseconds <= MAX_TIMEOUT_MS:
        raise BadTimeout(f"timeout of {milliseconds} ms, allowed are 0 to {MAX_TIMEOUT_MS}", {"limit": MAX_TIMEOUT_MS})
    return math.ceil(milliseconds) / 1000
