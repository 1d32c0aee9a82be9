"""Replies taken a whole read at a time: compared, counted and told apart without being decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

READ_BYTES: Final = 256 * 1024
"""The most that is read at a time."""


def lanes_of(data: bytes, size: int, lane_at: int, replies: Sequence[bytes]) -> bytes | None:
    """Return the lanes that whole replies of `size` bytes answer, or None if any of them is not the right one."""
    lanes = data[lane_at::size]
    try:
        expected = b"".join([replies[lane] for lane in lanes])
    except IndexError:
        return None
    return lanes if data == expected else None
