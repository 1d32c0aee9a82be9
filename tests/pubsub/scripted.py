"""The pub/sub dialect at a scripted node: what no real node can be brought to do on demand."""

from __future__ import annotations

from skywalker.wire import pubsub
from skywalker.wire.pubsub import ACKED, PUBLISH, PUBLISH_TYPED, Item
from tests.clients.scripted import Connection


def read(connection: Connection) -> Item | None:
    """Return the next message of the client; None at the end of the stream."""
    data = connection.take(2)
    if len(data) < 2:
        return None
    data += connection.take(data[1])
    if data[0] in (PUBLISH, PUBLISH_TYPED):
        data += connection.take(2 if data[0] == PUBLISH else 4)
        data += connection.take(int.from_bytes(data[-2:], "little"))
    (item,), rest = pubsub.split(data)
    assert rest == b""
    return item


def acknowledge(connection: Connection, count: int = 1) -> list[Item]:
    """Return the next messages of the client, each of them acknowledged."""
    items = []
    for _ in range(count):
        item = read(connection)
        assert item is not None, "the client closed the connection"
        connection.write_bytes(ACKED)
        items.append(item)
    return items


def deliver(connection: Connection, topic: str, payload: bytes) -> None:
    """Have the client get a message."""
    connection.write_bytes(pubsub.publish(topic.encode(), payload))
