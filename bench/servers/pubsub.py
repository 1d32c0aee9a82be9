"""What publishers and subscribers say to each server of the fan-out, and what they must hear, byte for byte.

Every message of a topic has the same size, so that deliveries are counted by their bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Final

from bench.servers import nats, redis
from bench.servers import skywalker as node
from bench.servers.peer import NO_OPENING, Opening, Running
from skywalker.wire import junction as native
from skywalker.wire import pubsub, values


@dataclasses.dataclass(frozen=True, slots=True)
class Dialect:
    """A server, and how it is spoken to. A topic is a few letters and digits, a payload of any bytes."""

    name: str
    started: Callable[[], contextlib.AbstractContextManager[Running]]
    subscribe: Callable[[bytes], Opening]
    publish: Callable[[bytes, bytes], bytes]  # of a topic and a payload
    message: Callable[[bytes, bytes], bytes]  # what each subscriber then hears
    ack: Callable[[int], bytes]  # what the publisher then hears, with so many subscribers; it may be nothing
    greeting: Opening = NO_OPENING  # how a publisher begins
    note: str = ""  # put after what the server is, where one server is spoken to in two ways
    ping: bytes = b""  # may be heard between any two messages
    pong: bytes = b""  # what is then said


REDIS: Final = Dialect(
    "redis",
    redis.started,
    subscribe=lambda topic: Opening.until(
        redis.array(b"SUBSCRIBE", topic), rb"\*3\r\n\$9\r\nsubscribe\r\n\$\d+\r\n%b\r\n:1\r\n\Z" % topic
    ),
    publish=lambda topic, payload: redis.array(b"PUBLISH", topic, payload),
    message=lambda topic, payload: redis.array(b"message", topic, payload),
    ack=lambda subscribers: b":%d\r\n" % subscribers,
)

NATS: Final = Dialect(
    "nats",
    nats.started,
    subscribe=lambda topic: nats.opening([topic], [b"1"]),
    publish=lambda topic, payload: nats.pub(topic, b"", payload),
    message=lambda topic, payload: nats.msg(topic, b"1", b"", payload),
    ack=lambda subscribers: b"",
    greeting=nats.opening([], []),
    ping=nats.PING,
    pong=nats.PONG,
)

SKYWALKER: Final = Dialect(
    "skywalker",
    functools.partial(node.started_pubsub, 1),
    subscribe=lambda topic: Opening(pubsub.subscribe(topic), pubsub.ACKED.__eq__),
    publish=pubsub.publish,
    message=pubsub.publish,
    ack=lambda subscribers: pubsub.ACKED,
)

SKYWALKER_2: Final = dataclasses.replace(
    SKYWALKER, name="skywalker-2", started=functools.partial(node.started_pubsub, 2)
)

_SUBSCRIBE: Final = values.pack(":subscribe")
_MESSAGE: Final = values.pack(":message")
_TIMEOUT: Final = values.pack(60_000)
_ID: Final = values.pack(0x0100)
"""Of three bytes, as those of a client that has been running for a while. A subscription keeps its own."""

NATIVE: Final = Dialect(
    "native",
    node.started,
    subscribe=lambda topic: Opening(
        native.frame(_SUBSCRIBE, _ID, _packed(topic)), native.frame(_SUBSCRIBE, _ID, native.TRUE).__eq__
    ),
    publish=lambda topic, payload: native.frame(native.SEND, _ID, _TIMEOUT, _packed(topic), values.pack(payload)),
    message=lambda topic, payload: native.frame(_MESSAGE, _ID, values.pack(payload)),
    ack=lambda subscribers: native.frame(native.SEND, _ID, native.TRUE),
    note=", in MessagePack",
)


def _packed(topic: bytes) -> bytes:
    return values.pack(topic.decode())


DIALECTS: Final = {
    dialect.name: dialect for dialect in (REDIS, NATS, SKYWALKER, SKYWALKER_2, NATIVE)
}  # in the order in which they are shown
