"""Values as they lie in a spool: blocks, each a header and what a MessagePack reader takes in one go.

The body of a block is, for each topic, its name, how many values follow, and these as they came.
A block's number is that of its first row. It is *open* until its values may be acknowledged: the
senders of an open one still have them, or the machine went down between the two.
"""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from skywalker.wire import values

_HEADER: Final = struct.Struct("<3sBIIIQ")  # magic, state, bytes of the body, CRC-32, rows, number
_COUNTS: Final = struct.Struct("<IQ")  # the end of a header, which the checksum is of besides the body
HEADER_BYTES: Final = _HEADER.size
STATE_AT: Final = 3
"""Where in a header the state is."""

OPEN: Final = 0
SEALED: Final = 1

_MAGIC: Final = b"SWb"


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A block's place: the number of its first row, its rows, and where in the file its header begins and body ends."""

    first: int
    rows: int
    begin: int
    end: int
    is_sealed: bool

    @property
    def last(self) -> int:
        """The number after that of its last row."""
        return self.first + self.rows


def pack(first: int, groups: Mapping[str, Sequence[bytes]]) -> bytes:
    """Return an open block of the encoded values of each topic."""
    parts: list[bytes] = []
    for topic, found in groups.items():
        parts += (values.pack(topic), values.pack(len(found)), *found)
    body = b"".join(parts)
    rows = sum(map(len, groups.values()))
    return _HEADER.pack(_MAGIC, OPEN, len(body), _checksum(body, rows, first), rows, first) + body


def _checksum(body: bytes | memoryview, rows: int, first: int) -> int:
    return zlib.crc32(body, zlib.crc32(_COUNTS.pack(rows, first)))


def scan(data: bytes | memoryview, begin: int = 0) -> Iterator[Block]:
    """Find the whole blocks from `begin` on; what follows them was torn, or damaged, or never written."""
    while len(data) - begin >= HEADER_BYTES:
        magic, state, size, checksum, rows, first = _HEADER.unpack_from(data, begin)
        end = begin + HEADER_BYTES + size
        if magic != _MAGIC or end > len(data) or _checksum(data[begin + HEADER_BYTES : end], rows, first) != checksum:
            return
        yield Block(first, rows, begin, end, state != OPEN)
        begin = end


def runs(data: bytes) -> Iterator[list[Block]]:
    """Find all whole blocks of a file, also those behind what is damaged: each run is without a gap."""
    begin = 0
    while begin != -1:
        run = list(scan(data, begin))
        if run:
            yield run
        begin = data.find(_MAGIC, run[-1].end if run else begin + 1)


def is_torn(rest: bytes) -> bool:
    """Whether the last bytes of a file are a block whose writing was cut short, so that it was never relied on."""
    if len(rest) < HEADER_BYTES:
        return _MAGIC.startswith(rest[: len(_MAGIC)])
    magic, state, size, *_ = _HEADER.unpack_from(rest)
    return bool(magic == _MAGIC and state == OPEN and HEADER_BYTES + size > len(rest))
