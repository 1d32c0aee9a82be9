"""A byte stream cut into frames, and each frame into the bytes of its elements.

A frame is a 16-bit big-endian length and that many bytes of one MessagePack array. This
module only finds where elements begin and end: nothing is decoded, so a value is passed on
as the very bytes that came. It is the hottest code of a node; every byte a node reads goes
through split(), once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from skywalker.limits import MAX_ARGUMENTS, MAX_DEPTH


class BadFrame(NamedTuple):
    """What split() yields in place of a frame that is not one well-formed MessagePack array.

    Its element zero is empty, which no encoded method is, so that a look-up of the method
    misses it as it misses an unknown one. `method` and `id` are empty where they could not be read.
    """

    no_method: bytes
    reason: str
    method: bytes
    id: bytes


Frame = tuple[bytes, ...] | BadFrame

# Bytes taken by a value, told by its first byte; 0 where more must be read, 255 where none may start so.
_SIZES: Final = bytes(
    [1] * 0x80  # positive fixint
    + [0] * 0x20  # fixmap, fixarray
    + [1 + n for n in range(0x20)]  # fixstr
    + [1, 255, 1, 1]  # nil, never used, false, true
    + [0] * 6  # bin 8/16/32, ext 8/16/32
    + [5, 9]  # float 32/64
    + [2, 3, 5, 9]  # uint
    + [2, 3, 5, 9]  # int
    + [3, 4, 6, 10, 18]  # fixext 1/2/4/8/16
    + [0] * 7  # str 8/16/32, array 16/32, map 16/32
    + [1] * 0x20  # negative fixint
)
# For those with a length in front: bytes of the length, and bytes between it and the payload (an ext's type).
_BLOBS: Final = {
    0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0),
    0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1),
    0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0),
}  # fmt: skip
# For containers with a count in front: bytes of the count, and values for each one counted.
_CONTAINERS: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}

_TRUNCATED: Final = "it ends within a value"


class _Malformed(Exception):
    """The bytes are no MessagePack value; the text says why."""


def split(data: bytes) -> tuple[list[Frame], bytes]:
    """Cut `data` into frames; return them and the rest that is not yet one.

    A well-formed frame comes as a tuple with the encoded bytes of each element; of an array
    longer than any call, all that follows the longest call's elements comes as one. A frame
    that is not well-formed comes as a BadFrame: where the next one starts is still known.
    Never raises, and takes time in proportion to the bytes.
    """
    view = data  # compiled, a pointer to its bytes
    frames: list[Frame] = []
    size = len(data)
    start = 0
    while size - start >= 2:
        body = start + 2
        end = body + (view[start] << 8 | view[start + 1])
        if end > size:
            break
        frames.append(_elements(view, body, end))
        start = end
    return frames, view[start:size]


def _elements(view: bytes, pos: int, end: int) -> Frame:
    elements: list[bytes] = []
    try:
        if pos < end and 0x90 < view[pos] <= 0x9F:
            count = view[pos] & 0x0F
            pos += 1
        else:
            pos, count = _array_header(view, pos, end)
        for _ in range(count if count < MAX_ARGUMENTS else MAX_ARGUMENTS):
            begin = pos
            # Most elements are short and of a size that the first byte tells.
            size = _SIZES[view[pos]] if pos < end else 255
            pos = pos + size if 0 < size < 255 else skip(view, pos, end)
            if pos > end:
                raise _Malformed(_TRUNCATED)
            elements.append(view[begin:pos])
        if count > MAX_ARGUMENTS:
            begin = pos
            pos = skip(view, pos, end, count - MAX_ARGUMENTS)
            elements.append(view[begin:pos])
        if pos != end:
            raise _Malformed(f"{end - pos} bytes follow the array")
    except _Malformed as error:
        method = elements[0] if elements else b""
        id = elements[1] if len(elements) > 1 else b""
        return BadFrame(b"", str(error), method, id)
    return tuple(elements)


def _array_header(view: bytes, pos: int, end: int) -> tuple[int, int]:
    """Return where the elements of the array at `pos` begin, and how many there are, at least one."""
    if pos == end:
        raise _Malformed("it is empty")
    head = view[pos]
    width = {0xDC: 2, 0xDD: 4}.get(head, 0)
    if not width and not 0x90 <= head <= 0x9F:
        raise _Malformed(f"it is no array, its first byte is 0x{head:02x}")
    pos += 1
    if pos + width > end:
        raise _Malformed(_TRUNCATED)
    count = int.from_bytes(view[pos : pos + width], "big") if width else head & 0x0F
    if not count:
        raise _Malformed("the array is empty")
    return pos + width, count


def skip(view: bytes, pos: int, end: int, count: int = 1) -> int:
    """Return where the `count` values that start at `pos` end.

    Raises _Malformed where they are not well-formed, nested deeper than MAX_DEPTH, or reach beyond `end`.
    """
    outer: list[int] = []  # for each container we are in: how many values follow it in its own container
    while True:
        while count == 0:
            if not outer:
                return pos
            count = outer.pop()
        count -= 1
        if pos >= end:
            raise _Malformed(_TRUNCATED)
        head = view[pos]
        size = _SIZES[head]
        if size == 255:
            raise _Malformed(f"0x{head:02x} starts no value")
        if size:
            pos += size
        elif head in _BLOBS:
            width, extra = _BLOBS[head]
            pos += 1
            length = int.from_bytes(view[pos : pos + width], "big")
            pos += width + extra + length
        else:
            if len(outer) == MAX_DEPTH:
                raise _Malformed(f"it is nested deeper than {MAX_DEPTH}")
            outer.append(count)
            pos += 1
            if head in _CONTAINERS:
                width, each = _CONTAINERS[head]
                count = int.from_bytes(view[pos : pos + width], "big") * each
                pos += width
            else:
                count = (head & 0x0F) * (2 if head < 0x90 else 1)
        if pos > end:
            raise _Malformed(_TRUNCATED)
