"""What topics are called whose tokens stand in records: one entry for each, behind the header of a file of its own.

i64  token
u16  bytes of the topic
...  the topic, as canonical MessagePack
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_HEAD: Final = struct.Struct("<qH")

MAX_NAMES: Final = 100_000
"""Topics that one worker names; tokens of more stay without a name."""


def pack(token: int, topic: bytes) -> bytes:
    """Return one entry."""
    return _HEAD.pack(token, len(topic)) + topic


def entries(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield token and topic of each whole entry of a file, without its header; the last may be torn."""
    at = 0
    while at + _HEAD.size <= len(data):
        token, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + length > len(data):
            return
        yield token, data[at : at + length]
        at += length


def size_of(path: Path) -> int:
    """Return the bytes of a file of names; 0 if the journal has just given it up."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
