"""One record: 32 bytes for each call that was answered, little-endian.

 0  f64  ended       when it was answered, in s of the monotonic clock; the header tells Unix time from it
 8  i64  token       of its topic
16  f32  wait        s from its arrival to its answer
20  u32  size        bytes of the value, as MessagePack; 0 if there was none
24  u32  connection  number of the connection within its worker
28  u8   method      METHODS
29  u8   outcome     OUTCOMES
30  u8   route       ROUTES: where its topic is owned
31  u8   door        DOORS: where it came in
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RECORD_BYTES: Final = 32

PAGE_RECORDS: Final = 32_768
"""Records that are handed to the disk together, at most."""

PAGE_BYTES: Final = PAGE_RECORDS * RECORD_BYTES

FIELDS: Final = (
    ("ended", "f8", 0),
    ("token", "i8", 8),
    ("wait", "f4", 16),
    ("size", "u4", 20),
    ("connection", "u4", 24),
    ("method", "u1", 28),
    ("outcome", "u1", 29),
    ("route", "u1", 30),
    ("door", "u1", 31),
)
"""Name, type (a letter and its bytes, as numpy spells them) and offset of every field, as headers have them."""

# The first of each stands for what a later version may add, and never for something known.
UNKNOWN: Final = "unknown"

SEND: Final = 1
RECV: Final = 2
TAKE: Final = 3
PUBLISH: Final = 4
METHODS: Final = (UNKNOWN, "send", "recv", "take", "publish")

MET: Final = 1
"""It met its partner, after it had waited, or where another worker owns the topic, which alone knows whether it had."""

PROMPT: Final = 2
"""Its partner was there: its wait is how long the hand-off took. What is published is always this."""

TIMED_OUT: Final = 3
CANCELLED: Final = 4
GONE: Final = 5
"""Its client left."""

BUSY: Final = 6
DRAINING: Final = 7
ERROR: Final = 8
"""It was refused with anything else."""

UNKNOWN_OUTCOME: Final = 9
"""Its sender was told that it may have been taken, which nobody knows."""

OUTCOMES: Final = (
    UNKNOWN,
    "met",
    "prompt",
    "timed-out",
    "cancelled",
    "gone",
    "busy",
    "draining",
    "error",
    "unknown-outcome",
)

HERE: Final = 0
SIBLING: Final = 1
NODE: Final = 2
ROUTES: Final = ("here", "sibling", "node")

JUNCTION: Final = 1
PUBSUB: Final = 2
DOORS: Final = (UNKNOWN, "junction", "pubsub")

WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "method": METHODS,
    "outcome": OUTCOMES,
    "route": ROUTES,
    "door": DOORS,
}
"""What the codes of a field stand for, by code."""


def codes(method: int, outcome: int, route: int, door: int) -> int:
    """Return the last four bytes of a record as one number."""
    return method | outcome << 8 | route << 16 | door << 24
