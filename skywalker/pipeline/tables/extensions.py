"""Encoded values of extension types, among which are the node's own words."""

from __future__ import annotations

from typing import Final

_HEADS: Final = frozenset((0xC7, 0xC8, 0xC9, *range(0xD4, 0xD9)))


def is_extension(head: int) -> bool:
    """Whether a value that begins with this byte is of an extension type."""
    return head in _HEADS
