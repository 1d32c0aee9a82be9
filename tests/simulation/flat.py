"""What siblings say to each other, taken apart: one flat message after the other, as workers/core/message.c has it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import msgpack

from workers.mesh import messages

HEAD: Final = struct.Struct("=IBBHQ")
"""The size of all, the kind, what it has, the size of the topic, the number."""

YES, SINCE, LIFE, LIMIT, FORM, VALUE = (1 << bit for bit in range(6))

OF_A_TOPIC: Final = (messages.SUBSCRIBE, messages.SUBSCRIBED, messages.LAGGED, messages.OFFER)
"""Whose first field is that, and not a number."""


def messages_in(packet: bytes) -> Iterator[list[Any]]:
    """Yield the kind of each, and its fields as those between nodes have them."""
    at = 0
    while at < len(packet):
        size, kind, has, topic_size, number = HEAD.unpack_from(packet, at)
        rest = Rest(packet[at + HEAD.size : at + size])
        at += size
        since = rest.unpack("=d") if has & SINCE else None
        life = rest.unpack("=Q") if has & LIFE else None
        limit = rest.unpack("=I") if has & LIMIT else None
        form = rest.take(rest.unpack("=I")) if has & FORM else None
        topic = _plain(rest.take(topic_size)) if topic_size else None
        value = _plain(rest.left) if has & VALUE else None
        first = [topic, number or None] if kind in OF_A_TOPIC else [number, since, topic]
        fields = [*first, value, form, life and f"{life:016x}", limit]
        if kind == messages.UNACKED:
            fields = [number, bool(has & YES)]
        yield [kind, fields[0], *(each for each in fields[1:] if each is not None)]


class Rest:
    """What is left of one."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, size: int) -> bytes:
        """Return so many bytes, which are not left then."""
        found, self.left = self.left[:size], self.left[size:]
        return found

    def unpack(self, form: str) -> Any:
        """Return one number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]


def _plain(packed: bytes) -> Any:
    try:
        return msgpack.unpackb(packed, strict_map_key=False)
    except ValueError:
        return packed
