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

MOST_ROWS: Final = 2**62
"""What numbers of rows are below: they must fit in what others take for a number."""

MOST_IN_VAIN: Final = 16
"""How often as many bytes as a file has are checked for blocks that turn out to be none."""

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
    """Find the whole blocks from `begin` on; what follows them was torn, or damaged, or never written.

    Their numbers go up. A row has a byte at least.
    """
    row = 0
    while size := _claimed(data, begin):
        _, state, _, checksum, rows, first = _HEADER.unpack_from(data, begin)
        end = begin + HEADER_BYTES + size
        if not (row <= first < first + rows <= MOST_ROWS and rows < size):
            return
        if _checksum(data[begin + HEADER_BYTES : end], rows, first) != checksum:
            return
        yield Block(first, rows, begin, end, state != OPEN)
        begin, row = end, first + rows


def _claimed(data: bytes | memoryview, at: int) -> int:
    """Return how many bytes a block there says that its body has; 0 if there is none, or they are not all there."""
    if len(data) - at < HEADER_BYTES:
        return 0
    magic, _, size, *_ = _HEADER.unpack_from(data, at)
    return size if magic == _MAGIC and at + HEADER_BYTES + size <= len(data) else 0


def runs(data: bytes) -> Iterator[list[Block]]:
    """Find all whole blocks of a file, also those behind what is damaged: each run is without a gap.

    Of a file that is forged to have much checked in vain, some may not be found.
    """
    begin, in_vain = 0, 0
    while begin != -1 and in_vain <= MOST_IN_VAIN * len(data):
        run = list(scan(data, begin))
        if run:
            yield run
        in_vain += _claimed(data, run[-1].end if run else begin)
        begin = data.find(_MAGIC, run[-1].end if run else begin + 1)


def is_torn(rest: bytes) -> bool:
    """Whether the last bytes of a file are a block whose writing was cut short, so that it was never relied on."""
    if len(rest) < HEADER_BYTES:
        return _MAGIC.startswith(rest[: len(_MAGIC)])
    magic, state, size, *_ = _HEADER.unpack_from(rest)
    return bool(magic == _MAGIC and state == OPEN and HEADER_BYTES + size > len(rest))
