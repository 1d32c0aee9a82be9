"""A byte stream cut into frames, and each frame into the bytes of its elements.

A frame is a 16-bit big-endian length and that many bytes of one MessagePack array. This
module only finds where elements begin and end: nothing is decoded, so a value is passed on
as the very bytes that came. A node has the same in C, in workers/core/frames.c, which tests compare with this.
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


Frame = list[bytes] | BadFrame

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
# Of those, bytes of the length or the count that follows the first byte; fixmap and fixarray have it in that byte.
_WIDTHS: Final = bytes([0] * 0xC4 + [1, 2, 4] * 2 + [0] * 15 + [1, 2, 4] + [2, 4] * 2 + [0] * 0x20)

_TRUNCATED: Final = "it ends within a value"


class _Malformed(Exception):
    """The bytes are no MessagePack value; the text says why."""


def split(data: bytes, width: int = 2) -> tuple[list[Frame], bytes]:
    """Cut `data` into frames; return them and the rest that is not yet one.

    A well-formed frame comes as a list with the encoded bytes of each element; of an array
    longer than any call, all that follows the longest call's elements comes as one. A frame
    that is not well-formed comes as a BadFrame: where the next one starts is still known.
    The length in front of a frame has `width` bytes: 2, or between nodes 4. Never raises, and takes time in proportion
    to the bytes; those of bad frames take ten times as long as any others.
    """
    view = data  # compiled, a pointer to its bytes
    frames: list[Frame] = []
    size = len(data)
    start = 0
    while size - start >= width:
        body = start + width
        length = view[start] << 8 | view[start + 1]
        if width == 4:
            length = length << 16 | view[start + 2] << 8 | view[start + 3]
        end = body + length
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
        elements = [b""] * (count if count < MAX_ARGUMENTS else MAX_ARGUMENTS)
        for at in range(len(elements)):
            begin = pos
            # Most elements are short and of a size that the first byte tells.
            size = _SIZES[view[pos]] if pos < end else 255
            pos = pos + size if 0 < size < 255 else skip(view, pos, end)
            if pos > end:
                raise _Malformed(_TRUNCATED)
            elements[at] = view[begin:pos]
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
    return elements


def _array_header(view: bytes, pos: int, end: int) -> tuple[int, int]:
    """Return where the elements of the array at `pos` begin, and how many there are, at least one."""
    if pos == end:
        raise _Malformed("it is empty")
    head = view[pos]
    width = {0xDC: 2, 0xDD: 4}.get(head, 0)
    if not width and not 0x90 <= head <= 0x9F:
        raise _Malformed(f"it is not an array, its first byte is 0x{head:02x}")
    pos += 1
    if pos + width > end:
        raise _Malformed(_TRUNCATED)
    count = int.from_bytes(view[pos : pos + width], "big") if width else head & 0x0F
    if not count:
        raise _Malformed("the array is empty")
    return pos + width, count


def is_value(data: bytes) -> bool:
    """Whether bytes are one well-formed value, and no deeper than one may be."""
    try:
        return skip(data, 0, len(data)) == len(data)
    except _Malformed:
        return False


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
        else:
            width = _WIDTHS[head]
            pos += 1
            if pos + width > end:
                raise _Malformed(_TRUNCATED)
            length = 0
            for at in range(pos, pos + width):
                length = length << 8 | view[at]
            pos += width
            if width and head < 0xDC:
                # A string, a binary, or an extension, whose type is one byte more.
                pos += length + (0xC7 <= head <= 0xC9)
            else:
                if len(outer) == MAX_DEPTH:
                    raise _Malformed(f"it is nested deeper than {MAX_DEPTH}")
                outer.append(count)
                count = length if width else head & 0x0F
                if head < 0x90 or head >= 0xDE:
                    count *= 2  # a map, of pairs
        if pos > end:
            raise _Malformed(_TRUNCATED)
