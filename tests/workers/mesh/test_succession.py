"""A sibling that is replaced while calls are on their way to it: nothing that comes later overtakes them."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workers.link_end import LinkEnd
from tests.workers.one_worker import OneWorker
from tests.workers.pubsub_client import ACK, PubSubClient, publish, subscribe
from tests.workers.turns import life
from tests.workers.wire_client import WireClient, packed, raw_call
from workers.engine.loop import READ
from workers.mesh.messages import (
    CENSUS,
    COUNTED,
    OFFER,
    SEND,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
    TOOK,
    WITHDRAW,
    WITHDRAWN,
)
from workers.mesh.succession import PATIENCE_S

LONG_MS = 60_000
NUMBER, VALUE = 1, 4
"""Where a SEND, and a message of a kind and a number, has them."""


class World:
    """The first of two workers; the other one, which owns `topic`, has been linked once."""

    def __init__(self) -> None:
        self.worker = OneWorker(workers=2)
        core = self.worker.core
        self._open: list[socket.socket] = []
        self.topic = next(
            f"topic-{n}"
            for n in itertools.count()
            if core.router.owner(packed(f"topic-{n}")) is core.siblings.owners[1]
        )
        self.old = self.link()

    def close(self) -> None:
        for sock in self._open:
            sock.close()
        for link in self.worker.core.siblings.all():
            link.close("the test is over")
        self.worker.close()

    def link(self) -> LinkEnd:
        """Return the next worker in the place of the other."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._open.append(ours)
        for sock in (ours, theirs):
            sock.setblocking(False)
        self.worker.core.siblings.connect(1, theirs, life())
        self.worker.turn()
        return LinkEnd(ours, lives=False)

    def client(self) -> WireClient:
        client = self.worker.connect()
        self._open.append(client.socket)
        return client

    def pubsub(self) -> PubSubClient:
        client = self.worker.pubsub()
        self._open.append(client.socket)
        return client

    def subscriber(self) -> PubSubClient:
        """Return one that subscribes to the topic."""
        client = self.pubsub()
        client.write(subscribe(self.topic.encode()))
        self.worker.turn()
        self.old.say(SUBSCRIBED, self.topic)
        self.worker.turn()
        assert client.read(1) == ACK
        return client

    def expect(self, client: PubSubClient, *messages: bytes) -> None:
        """Have the worker's turn, and the client hear of these messages and nothing else."""
        self.worker.turn()
        expected = b"".join(publish(self.topic.encode(), message) for message in messages)
        assert client.read(len(expected)) == expected
        assert not client.has_input()

    def answer_all(self) -> None:
        """Have the old worker say that it has heard all so far."""
        for message in self.old.heard(CENSUS):
            self.old.say(COUNTED, message[NUMBER], b"")
        self.worker.turn()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    try:
        yield world
    finally:
        world.close()


def values(messages: list[list[Any]]) -> list[Any]:
    return [message[VALUE] for message in messages]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_sends_that_are_given_back_go_on_in_the_order_in_which_they_came(world: World, order: tuple[int, ...]) -> None:
    client = world.client()
    client.write(b"".join(raw_call(*map(packed, (":send!", 1, LONG_MS, world.topic, n))) for n in range(3)))
    world.worker.turn()
    assert values(world.old.heard(SEND)) == [0, 1, 2]
    new = world.link()
    client.call(":send!", 2, LONG_MS, world.topic, 3)
    world.worker.turn()
    asked = [message[NUMBER] for message in world.old.heard(WITHDRAW)]
    assert sorted(asked) == [message[NUMBER] for message in world.old.heard(SEND)]
    for at in order:
        world.old.say(WITHDRAWN, asked[at])
    world.answer_all()
    assert values(new.heard(SEND)) == [0, 1, 2, 3]


def test_one_that_does_not_answer_is_not_waited_for(world: World) -> None:
    client = world.subscriber()
    new = world.link()
    assert not new.heard(SUBSCRIBE, SETTLED)
    world.worker.turn(later=PATIENCE_S + 0.1)
    assert [message[0] for message in new.heard(SUBSCRIBE, SETTLED)] == [SUBSCRIBE, SETTLED]
    new.say(OFFER, world.topic, None, b"2", None)
    world.expect(client, b"2")


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "silent"])
def test_a_successor_that_dies_meanwhile_is_succeeded(world: World, answered: bool) -> None:
    client = world.client()
    client.call(":send!", 1, LONG_MS, world.topic, 1)
    world.worker.turn()
    new = world.link()
    new.socket.close()
    world.worker.turn()
    [[_, number, _]] = world.old.heard(WITHDRAW)
    world.old.say(WITHDRAWN, number)
    if answered:
        world.answer_all()
    client.call(":send!", 2, LONG_MS, world.topic, 2)
    world.worker.turn()
    newest = world.link()
    world.worker.turn(later=PATIENCE_S + 0.1)
    assert values(newest.heard(SEND)) == [1, 2]


def test_a_value_that_waits_behind_an_ack_is_asked_back_from_its_subscriber_once(world: World) -> None:
    client, core = world.subscriber(), world.worker.core
    ours = next(name for name in map(str, itertools.count()) if core.router.owner(packed(name)).carrier is None)
    client.write(subscribe(ours.encode()))
    world.worker.turn()
    assert client.read(1) == ACK
    client.write(publish(ours.encode(), b"own"))  # which is written behind the ack of it, and the value behind both
    world.old.say(OFFER, world.topic, 5, b"value", None)
    [connection], [link] = core.connections, core.siblings.all()
    connection.ready(READ)
    link.ready(READ)
    outbound: Any = link.outbound
    assert len(outbound._passing[b"\x05"].given_to) == 1
    world.worker.turn()
    expected = ACK + publish(ours.encode(), b"own") + publish(world.topic.encode(), b"value")
    assert client.read(len(expected)) == expected
    assert world.old.heard(TOOK) == [[TOOK, 5]]
