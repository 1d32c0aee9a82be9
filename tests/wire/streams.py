"""What the tests of every decoder of a byte stream share: ways to cut it, and a second opinion on MessagePack.

A decoder here is what skywalker.wire.frames.split is: bytes in, items and the rest out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgpack

Item = TypeVar("Item")
Decoder = Callable[[bytes], tuple[list[Item], bytes]]


def framed(body: bytes) -> bytes:
    """Return the frame with this body."""
    return len(body).to_bytes(2, "big") + body


def decode_pieces(decode: Decoder[Item], pieces: Iterable[bytes]) -> tuple[list[Item], bytes]:
    """Return all items and the last rest of a stream that arrives in these pieces."""
    items: list[Item] = []
    rest = b""
    for piece in pieces:
        found, rest = decode(rest + piece)
        items += found
    return items, rest


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    """Return the stream cut at these places; several cuts at one place give empty pieces."""
    bounds = [0, *sorted(places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(bounds)]


def assert_decodes_however_cut(decode: Decoder[Item], units: Sequence[bytes], expected: Sequence[Item]) -> None:
    """Assert that `units`, each the bytes of one item, decode whole, byte by byte, with a tail, and truncated."""
    stream = b"".join(units)
    assert decode(stream) == (list(expected), b"")
    assert decode_pieces(decode, cut(stream, range(1, len(stream)))) == (list(expected), b"")
    done = 0
    for count, unit in enumerate(units):
        # A part of the next item, as a trailing rest of those before it, is left alone.
        for end in range(done, done + len(unit)):
            assert decode(stream[:end]) == (list(expected[:count]), stream[done:end])
        done += len(unit)


def length_of_first_value(data: bytes) -> int | None:
    """Return where the first value of `data` ends in the opinion of the msgpack library, None if it is malformed.

    The library skips the value instead of building it: Python has no form for a list as a map's
    key or for a timestamp of an odd length, yet both are well-formed.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    # The library takes the longest length of an extension for that of none: let it read the next longest.
    unpacker.feed(data.replace(b"\xc9\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xfe"))
    try:
        unpacker.skip()
    except (msgpack.OutOfData, msgpack.FormatError, msgpack.StackError):
        return None
    length: int = unpacker.tell()
    return length


def is_one_array(body: bytes) -> bool:
    """Tell whether a frame's body is one array, not empty, and nothing else, in the opinion of the msgpack library."""
    starts_array = body[:1] != b"" and (0x91 <= body[0] <= 0x9F or body[0] in (0xDC, 0xDD))
    none_in_it = body in (b"\xdc\0\0", b"\xdd\0\0\0\0")
    return starts_array and not none_in_it and length_of_first_value(body) == len(body)
