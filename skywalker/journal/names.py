"""What topics are called whose tokens stand in records: one entry for each, behind the header of a file of its own.

i64  token
u16  bytes of the topic
...  the topic, as canonical MessagePack
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from skywalker.limits import MAX_TOPIC

_HEAD: Final = struct.Struct("<qH")

MAX_NAMES: Final = 100_000
"""Topics that one worker names; tokens of more stay without a name."""


def pack(token: int, topic: bytes) -> bytes:
    """Return one entry."""
    return _HEAD.pack(token, len(topic)) + topic


def entries(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield token and topic of each whole entry from here on; the last may be torn, and what is none ends them."""
    for _ in range(MAX_NAMES):
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        token, length = _HEAD.unpack(head)
        if not 0 < length <= MAX_TOPIC:
            return
        topic = file.read(length)
        if len(topic) < length:
            return
        yield token, topic


def size_of(path: Path) -> int:
    """Return the bytes of a file of names; 0 if the journal has just given it up."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
