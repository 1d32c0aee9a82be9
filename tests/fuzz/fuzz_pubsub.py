"""The pub/sub dialect: its messages, and its clients at one worker, beside one of the MessagePack dialect.

A stream is cut into the same messages however it arrives, compiled and plain, with every byte accounted for. What is
compressed gives no more than a payload may have, or a ValueError. Every message of a client that stays is acked once,
in order; what subscribers get somebody published, to a topic that they asked for, in a form that they can read. Once
all are gone, nothing is held. The worker finds no mistake of its own.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

import msgpack

from skywalker.wire import pubsub
from skywalker.wire.pubsub import ACK, COMPRESSED, MAX_PAYLOAD, PUBLISH, PUBLISH_TYPED, SUBSCRIBE_TYPED, split
from tests.fuzz.answers import frames_of
from tests.fuzz.talks import LIMITS, ROOMY, Client, Talk
from tests.fuzz.twins import agreed, outcome, twins
from tests.wire.streams import cut, decode_pieces, framed
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient

FORMS = twins("skywalker.wire.pubsub")
CLIENTS = 3
KNOWN = range(PUBLISH, PUBLISH_TYPED + 1)


def check_input(data: bytes) -> object:
    """Hold the invariant for an input as a stream, and as what clients do."""
    if not data:
        return None
    check_stream(data[1:], max(1, data[0]))
    check_inflate(data[1:])
    (whole, all_read), (pieces, all_read_those) = (play(data, cut=cut) for cut in (False, True))
    if data[0] % len(LIMITS) == ROOMY and all_read and all_read_those:
        assert whole[:CLIENTS] == pieces[:CLIENTS]
        assert frames_of(whole[CLIENTS]) == frames_of(pieces[CLIENTS])
    return whole


def check_stream(stream: bytes, step: int) -> None:
    """Hold the invariant of messages."""
    items, rest = agreed(form.split(stream) for form in FORMS)
    found, left = decode_pieces(split, cut(stream, range(step, len(stream), step)))
    for at, (code, topic, form, payload, whole) in enumerate(items):
        assert found[at] == items[at]
        if code not in KNOWN:
            assert (at + 1, rest, whole) == (len(items), b"", b""), "nothing after it can be read"
            return
        assert stream.startswith(whole)
        assert whole[:1] == bytes((code,))
        if code == PUBLISH:
            assert pubsub.publish(topic, payload) == whole
        elif code == PUBLISH_TYPED:
            assert pubsub.publish_typed(topic, form, payload) == whole
        elif code != ACK:
            assert whole == whole[:1] + bytes((len(topic),)) + topic
        stream = stream.removeprefix(whole)
    assert (found, left) == (items, rest)
    assert stream == rest


def check_inflate(payload: bytes) -> None:
    """Hold the invariant of what is compressed."""
    data = agreed(outcome(partial(form.inflate, payload), ValueError) for form in FORMS)
    if isinstance(data, bytes):
        assert len(data) <= MAX_PAYLOAD
        assert zlib.decompress(payload) == data
    assert msgpack.unpackb(agreed(form.bus_value(payload) for form in FORMS)) == payload


def play(data: bytes, *, cut: bool) -> tuple[list[bytes], bool]:
    """Return what each client has heard, and whether all read what there was for them."""
    talk = Talk(data, cut=cut)
    for _ in range(CLIENTS):
        talk.come(PubSubClient, lambda body: body)
    caller = talk.come(JunctionClient, framed)
    talk.run()
    talk.calm()
    clients = talk.clients[:CLIENTS]
    published = published_by(clients)
    for client in clients:
        check_heard(client, published, bytes(caller.sent))
    talk.leave()
    return [bytes(client.socket.heard) for client in talk.clients], talk.keeps_up


def published_by(clients: list[Client]) -> set[bytes]:
    """Return what clients may have published, as the bus has it."""
    return {pubsub.bus_value(payload_of(item)) for client in clients for item in split(bytes(client.sent))[0]}


def payload_of(item: Any) -> bytes:
    """Return what a message publishes, decompressed if it can be."""
    _, _, form, payload, _ = item
    if form[1:] and form[1] & COMPRESSED:
        result = outcome(lambda: pubsub.inflate(payload), ValueError)
        return result if isinstance(result, bytes) else b""
    return payload  # type: ignore[no-any-return]


def check_heard(client: Client, published: set[bytes], called: bytes) -> None:
    """See that a client has its acks, and of others' messages only what it asked for."""
    said, _ = split(bytes(client.sent))
    heard, rest = split(bytes(client.socket.heard))
    gone = client.socket.closed or client.socket.has_ended
    assert not rest or gone
    acks = sum(item[0] == ACK for item in heard)
    expected = sum(item[0] in KNOWN and item[0] != ACK for item in said)
    assert acks <= expected
    assert acks == expected or gone
    asked = {item[1]: item[0] for item in said if item[0] in KNOWN}
    is_typed = any(item[0] == SUBSCRIBE_TYPED for item in said)
    for item in heard:
        code, topic, _, _, _ = item
        assert code in (ACK, PUBLISH, PUBLISH_TYPED)
        if code != ACK:
            assert topic in asked
            assert code == PUBLISH or is_typed
            payload = payload_of(item)
            assert pubsub.bus_value(payload) in published or payload in called
