"""Subscribers that lag behind: the buffer has its bound, then the node, and whoever is cut off is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import skywalker
from skywalker.clients.blocking.connection import READ_BYTES
from skywalker.embedding import Node, embedded
from skywalker.limits import KIB
from tests.helpers import eventually
from tests.pubsub.driving import AioBroker, AioSubscription, Broker, Connect, unread

SOON = 10.0

LARGEST_READ = 256 * KIB
"""Bytes that asyncio reads at a time, at most."""

Nodes = Callable[[int], Node]


@pytest.fixture(scope="module")
def impatient() -> Iterator[Node]:
    """A node that cuts off whoever lags 256 KiB behind."""
    with embedded(workers=2, pubsub=True, subscriber_buffer=256 * KIB) as node:
        yield node
        assert "Traceback" not in node.log


def buffered(broker: Broker, count: int) -> dict[str, int]:
    """Return the option that bounds what is read ahead, where that is done."""
    return {"buffer": count} if isinstance(broker, AioBroker) else {}


def test_no_more_messages_wait_than_said_and_one_read(connect: Connect, node: Nodes, topic: str) -> None:
    broker = connect(node(2).pubsub_address)
    messages = broker.subscribe(topic, **buffered(broker, 10))
    payload = bytes(4 * KIB)
    count = 1_000
    for _ in range(count):
        broker.publish(topic, payload)
    if isinstance(messages, AioSubscription):
        eventually(lambda: unread(messages) >= 10)
        bound = 10 + LARGEST_READ // len(payload)
    else:
        assert unread(messages) == 0  # it does not read ahead
        bound = READ_BYTES // len(payload)
    most = 0
    for _ in range(count):
        most = max(most, unread(messages))
        assert messages.get(SOON).payload == payload
    assert most <= bound
    assert messages.gaps == 0


def test_the_topics_can_be_changed_while_the_buffer_is_full(connect: Connect, node: Nodes, topic: str) -> None:
    broker = connect(node(2).pubsub_address)
    messages = broker.subscribe(topic, f"{topic}-left", **buffered(broker, 1))
    for number in range(3_000):
        broker.publish(topic, b"%d" % number * 50)
    messages.unsubscribe(f"{topic}-left")
    messages.subscribe(f"{topic}-other")
    broker.publish(f"{topic}-other", b"last")
    for number in range(3_000):
        assert messages.get(SOON).payload == b"%d" % number * 50
    assert messages.get(SOON).payload == b"last"
    assert messages.gaps == 0


def test_whoever_lags_behind_the_nodes_bound_is_cut_off_and_told_and_others_are_not(
    connect: Connect, impatient: Node, topic: str
) -> None:
    broker = connect(impatient.pubsub_address)
    slow, quick = broker.subscribe(topic, **buffered(broker, 10)), broker.subscribe(topic)
    count, size = 1_000, 60_000  # far more than the kernel holds for one connection
    for number in range(count):
        broker.publish(topic, b"%d " % number + bytes(size))
        assert quick.get(SOON).payload.startswith(b"%d " % number)
    got: list[bytes] = []
    while got[-1:] != [b"last"]:
        try:
            got.append(slow.get(0.1).payload.split()[0])
        except (skywalker.TimedOut, skywalker.Unreachable):
            broker.publish(topic, b"last")
    numbers = [*map(int, got[:-1])]
    assert 1 < len(numbers) < count
    assert numbers == sorted({*numbers})
    # On a machine that has other work it may be cut off before its buffer is full, and then once more.
    assert slow.gaps >= 1
    if slow.gaps == 1:
        assert numbers == [*range(len(numbers))]
    assert quick.gaps == 0
