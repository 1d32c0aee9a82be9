"""What goes through a topic, as programs see it, to the dialect's bytes and back."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from skywalker.errors import LocalProtocolError, RemoteProtocolError
from skywalker.wire import pubsub
from skywalker.wire.pubsub import COMPRESSED, MAX_PAYLOAD, PUBLISH_TYPED, Item

Text = str | bytes
"""A topic or a payload as a program may give it; also as a bytearray or a memoryview, as is usual for bytes."""

MAX_HINT: Final = 255


class Message(NamedTuple):
    """What a subscriber gets; a topic that is not UTF-8 is decoded with surrogateescape."""

    topic: str
    payload: bytes
    hint: int | None = None
    """What the publisher said of the payload's type, 0 if nothing; None to a subscriber that did not ask for it."""


def topic_bytes(topic: Any) -> bytes:
    """Return a topic as the dialect has it. Raises LocalProtocolError if it is too long, or neither text nor bytes."""
    data = _encoded(topic, "topic")
    pubsub.subscribe(data)  # raises
    return data


def topic_text(topic: bytes) -> str:
    """Return a topic as messages and errors have it."""
    return topic.decode(errors="surrogateescape")


def _encoded(text: Any, what: str) -> bytes:
    if isinstance(text, str):
        try:
            return text.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise LocalProtocolError(f"{what} {text!r:.100} cannot be encoded as UTF-8: {error.reason}") from None
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise LocalProtocolError(f"{what} of type {type(text).__name__}: give str or bytes")


def publication(topic: bytes, payload: Any, hint: int | None, compress: bool) -> bytes:
    """Return what publishes `payload`; with neither hint nor compression, as every broker of the dialect knows it.

    Raises LocalProtocolError for what is too long or not text or bytes, or a hint that is not from 0 to 255.
    """
    payload = _encoded(payload, "payload")
    if hint is None and not compress:
        return pubsub.publish(topic, payload)
    if hint is not None and not (isinstance(hint, int) and 0 <= hint <= MAX_HINT):
        raise LocalProtocolError(f"hint {hint!r}, allowed are 0 to {MAX_HINT}")
    flags = 0
    # Too long a payload is refused by its own length: a node takes no more, however small it was made on the way.
    if compress and len(payload) <= MAX_PAYLOAD and len(smaller := pubsub.deflate(payload)) < len(payload):
        payload, flags = smaller, COMPRESSED
    return pubsub.publish_typed(topic, bytes((hint or 0, flags)), payload)


def message_of(item: Item) -> Message:
    """Return the message that came as `item`. Raises RemoteProtocolError if its payload cannot be decompressed."""
    code, topic, form, payload, _ = item
    if code != PUBLISH_TYPED:
        return Message(topic_text(topic), payload)
    if form[1] & COMPRESSED:
        try:
            payload = pubsub.inflate(payload)
        except ValueError as error:
            raise RemoteProtocolError(f"the node sent a message on topic {topic_text(topic)!r}: {error}") from error
    return Message(topic_text(topic), payload, form[0])
