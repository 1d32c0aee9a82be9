"""The gobroker dialect, port 61626: its messages, to bytes and back, and what they mean on the one bus.

    publish           1, uint8 n, topic[n], uint16 m little-endian, payload[m]
    subscribe         2, uint8 n, topic[n]
    unsubscribe       3, uint8 n, topic[n]
    ack               4
    subscribe-typed   5, uint8 n, topic[n]
    publish-typed     6, uint8 n, topic[n], uint8 hint, uint8 flags, uint16 m little-endian, payload[m]

Of the flags, bit 0 says that the payload is zlib-compressed; the hint is the programs' own business.
"""

from __future__ import annotations

import zlib
from typing import Final

from skywalker.errors import LocalProtocolError
from skywalker.wire import values

PUBLISH: Final = 1
SUBSCRIBE: Final = 2
UNSUBSCRIBE: Final = 3
ACK: Final = 4
SUBSCRIBE_TYPED: Final = 5
PUBLISH_TYPED: Final = 6

ACKED: Final = b"\x04"
"""The whole message."""

COMPRESSED: Final = 1
"""The flag of a payload that is zlib-compressed."""

MAX_TOPIC: Final = 255
"""Bytes of a topic."""

MAX_PAYLOAD: Final = 65_535
"""Bytes of a payload, also of one that was decompressed."""

FORM: Final = 2
"""Bytes of a hint and of flags."""

Item = tuple[int, bytes, bytes, bytes, bytes]
"""One message: its code, topic, hint and flags (empty where it has none), payload, and the whole of it as it came."""


def split(data: bytes) -> tuple[list[Item], bytes]:
    """Cut `data` into messages; return them and the rest that is not yet one. Never raises.

    A code that is not known comes last, as a message without a topic: where it ends is unknown, so nothing
    after it can be read.
    """
    view = data  # compiled, a pointer to its bytes
    ack, plain, with_form = ACK, PUBLISH, PUBLISH_TYPED  # compiled, C's integers
    items: list[Item] = []
    size = len(data)
    start = 0
    while start < size:
        code = view[start]
        if code == ack:
            items.append((code, b"", b"", b"", ACKED))
            start += 1
            continue
        if not 0 < code <= with_form:
            items.append((code, b"", b"", b"", b""))
            start = size
            break
        topic = start + 2
        if topic > size:
            break
        form = topic + view[start + 1]  # where the topic ends
        end = payload = form
        if code in (plain, with_form):
            payload = form + 2 if code == plain else form + FORM + 2
            if payload > size:
                break
            end = payload + (view[payload - 2] | view[payload - 1] << 8)
        if end > size:
            break
        typed = view[form : form + FORM] if code == with_form else b""
        items.append((code, view[topic:form], typed, view[payload:end], view[start:end]))
        start = end
    return items, view[start:size]


def publish(topic: bytes, payload: bytes) -> bytes:
    """Return the message that publishes `payload`, to a node or to a subscriber.

    Raises LocalProtocolError if one of them is too long.
    """
    return b"".join((_about(PUBLISH, topic), _size(payload), payload))


def publish_typed(topic: bytes, form: bytes, payload: bytes) -> bytes:
    """Return the same with a hint and flags, the two bytes of `form`; the payload is as the flags say."""
    return b"".join((_about(PUBLISH_TYPED, topic), form, _size(payload), payload))


def subscribe(topic: bytes, typed: bool = False) -> bytes:
    """Return the message that subscribes; a `typed` subscriber gets hints and flags too, a plain one does not."""
    return _about(SUBSCRIBE_TYPED if typed else SUBSCRIBE, topic)


def unsubscribe(topic: bytes) -> bytes:
    """Return the message that ends a subscription of either kind."""
    return _about(UNSUBSCRIBE, topic)


def _about(code: int, topic: bytes) -> bytes:
    if len(topic) > MAX_TOPIC:
        raise LocalProtocolError(f"topic of {len(topic)} bytes, limit of pub/sub is {MAX_TOPIC}")
    return bytes((code, len(topic))) + topic


def _size(payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD:
        raise LocalProtocolError(f"payload of {len(payload)} bytes, limit of pub/sub is {MAX_PAYLOAD}")
    return len(payload).to_bytes(2, "little")


def deflate(payload: bytes) -> bytes:
    """Return the payload compressed."""
    return zlib.compress(payload)


def inflate(payload: bytes) -> bytes:
    """Return what a compressed payload holds. Raises ValueError if it is not zlib's, or holds over MAX_PAYLOAD bytes.

    However much it claims to hold, no more than that is ever made of it.
    """
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(payload, MAX_PAYLOAD + 1)
    except zlib.error as error:
        raise ValueError(f"the payload is not zlib-compressed: {error}") from error
    if len(data) > MAX_PAYLOAD:
        raise ValueError(f"the payload holds more than {MAX_PAYLOAD} bytes")
    if not inflater.eof or inflater.unused_data:
        raise ValueError("the payload is not one whole zlib stream")
    return data


# On the bus, topics and values are MessagePack.


def bus_topic(topic: bytes) -> bytes:
    """Return the bus's name of a topic: the string of these bytes, or the binary where they are not UTF-8."""
    try:
        return values.pack(str(topic, "utf-8"))
    except UnicodeDecodeError:
        return values.pack(topic)


def bus_value(payload: bytes) -> bytes:
    """Return a payload as the bus has it, as binary."""
    return values.pack(payload)
