"""What a file of a journal begins with: what it is, who wrote it, and how to read it.

8 bytes   MAGIC
u16       version of the format
u16       bytes of a record, 0 if they have no fixed length
u32       bytes of the MessagePack map that follows; zeros fill up to HEADER_BYTES
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Final, NamedTuple

from skywalker.errors import JournalError
from skywalker.journal.record import FIELDS, RECORD_BYTES
from skywalker.wire import values

MAGIC: Final = b"skyjrnl\0"
VERSION: Final = 1
HEADER_BYTES: Final = 1024

CALLS: Final = "calls"
NAMES: Final = "names"

_HEAD: Final = struct.Struct("<8sHHI")
_MAX_TEXT: Final = 255
"""Bytes of a name that go into a header."""
_MAX_NUMBER: Final = 2**63
"""Times of records have so many bits, and what is added to them may have no more."""
_MAX_COUNT: Final = 2**31
"""What a worker is numbered and a record stands for are 32 bits in tables, and sums of all records must fit in 64."""


class Origin(NamedTuple):
    """Who writes a journal."""

    source: str  # "node", or "bench" for the client's side of a load test
    node: str  # its id
    name: str
    worker: int


@dataclasses.dataclass(frozen=True, slots=True)
class Header:
    """The header of one file. A record's Unix time is its `ended` and the clock, added."""

    kind: str  # CALLS or NAMES
    source: str
    node: str
    name: str
    worker: int
    ring: str  # version of the ring that the worker followed
    clock_ns: int  # ns from the zero of the monotonic clock to that of Unix time, when the file was begun
    opened_ns: int  # Unix time at which it was
    sample: int = 1  # every record stands for so many calls
    dropped: int = 0  # records that the disk did not take since the segment before was complete; known once this one is
    moved: int = 0  # connections that came from other workers of the node since then, known as late

    @property
    def origin(self) -> Origin:
        """Who wrote the file."""
        return Origin(self.source, self.node, self.name, self.worker)

    def pack(self) -> bytes:
        """Return the first HEADER_BYTES of the file."""
        fields = FIELDS if self.kind == CALLS else ()
        said = dataclasses.asdict(self) | {
            "node": _cut(self.node),
            "name": _cut(self.name),
            "fields": [list(field) for field in fields],
        }
        body = values.pack(said)
        return (_HEAD.pack(MAGIC, VERSION, RECORD_BYTES if fields else 0, len(body)) + body).ljust(HEADER_BYTES, b"\0")

    @classmethod
    def parse(cls, data: bytes) -> Header:
        """Read the first HEADER_BYTES of a file. Raises JournalError for anything that this version cannot read."""
        if data[: len(MAGIC)] != MAGIC[: len(data)]:
            raise JournalError("no journal: it begins otherwise")
        if len(data) < HEADER_BYTES:
            raise JournalError(f"its header is cut off after {len(data)} of {HEADER_BYTES} bytes")
        _, version, record_bytes, length = _HEAD.unpack_from(data)
        if version != VERSION:
            raise JournalError(f"it is of version {version}, and this skywalker reads version {VERSION}")
        try:
            said = values.unpack(data[_HEAD.size : _HEAD.size + length])
        except ValueError as error:
            raise JournalError(f"its header is damaged: {error}") from error
        match said:
            case {
                "kind": ("calls" | "names") as kind,
                "source": str(source),
                "node": str(node),
                "name": str(name),
                "worker": int(worker),
                "ring": str(ring),
                "clock_ns": int(clock),
                "opened_ns": int(opened),
                "sample": int(sample),
                "dropped": int(dropped),
                "fields": fields,
            } if (
                0 < sample < _MAX_COUNT
                and 0 <= worker <= _MAX_COUNT
                and 0 <= dropped < _MAX_NUMBER
                and type(moved := said.get("moved", 0)) is int  # some that are of this version say nothing of it
                and 0 <= moved < _MAX_NUMBER
                and max(abs(clock), abs(opened)) < _MAX_NUMBER
                and fields == [[*field] for field in (FIELDS if kind == CALLS else ())]
                and record_bytes == (RECORD_BYTES if kind == CALLS else 0)
            ):
                return cls(kind, source, node, name, worker, ring, clock, opened, sample, dropped, moved)
        raise JournalError("its header does not say what one of this version does")


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[:_MAX_TEXT].decode("utf-8", "ignore")
