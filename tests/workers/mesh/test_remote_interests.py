"""Both ends of a link, moved by hand: a node that subscribes and is slow, an owner that says anything."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.address import Address
from skywalker.members import Member, Snapshot
from skywalker.ring import random_tokens
from tests.helpers import time_factor
from tests.workers.link_end import LinkEnd
from tests.workers.one_worker import OneWorker
from tests.workers.pubsub_client import ACK, PubSubClient, publish, subscribe, unsubscribe
from tests.workers.turns import life
from tests.workers.wire_client import call, packed
from workers.calls.own_node import VERSION
from workers.mesh.messages import (
    LAGGED,
    MET,
    OFFER,
    PUBLISH,
    RETIRED,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
)
from workers.nodes.outbound_peer import PARTING_S

BIG = bytes(60_000)


class Bench:
    """One worker, and who is connected to it."""

    def __init__(self, worker: OneWorker) -> None:
        self.worker = worker
        self._open: list[socket.socket] = []

    def pubsub(self) -> PubSubClient:
        """Return a client of the pub/sub dialect."""
        client = self.worker.pubsub()
        self._open.append(client.socket)
        return client

    def guest(self, name: str = "guest", **options: Any) -> LinkEnd:
        """Return a node that asks this one."""
        client = self.worker.connect()
        self._open.append(client.socket)
        who = {"from": name, "by": 0, "node": self.worker.member.id, "worker": 0, "version": VERSION}
        client.write(call(":peer", 0, who | options))
        self.worker.turn()
        assert client.reply()[2]["worker"] == 0
        return LinkEnd(client.socket)

    def sibling(self) -> LinkEnd:
        """Return a worker of this node that asks this one."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._open.append(ours)
        theirs.setblocking(False)
        self.worker.core.siblings.serve(theirs, life())
        return LinkEnd(ours)

    def owner(self) -> tuple[LinkEnd, str]:
        """Return a node that owns all topics, and has been asked for something; and a topic."""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self._open.append(self.listener)
        address = Address(*self.listener.getsockname())
        member = Member("owner", "owner", address, 1, False, tuple(sorted(random_tokens())))
        self.worker.core.follow(Snapshot([member]))
        self.first = self.pubsub()
        self.first.write(subscribe(b"first"))
        far = self.dialled()
        self.expect(self.first, ACK)
        return far, "topic"

    def part_from_owner(self) -> None:
        """Have one of whom nothing is wanted any more, and whose link has ended."""
        far, _ = self.owner()
        self.first.write(unsubscribe(b"first"))
        assert self.hear(far) == [SUBSCRIBE, "first", 0]
        far.say(SUBSCRIBED, "first")
        far.socket.close()
        self.expect(self.first, ACK)
        self.worker.turn(later=2)

    def dialled(self) -> LinkEnd:
        """Return the owner as it has just been dialled, and told that somebody subscribes to its first topic."""
        self.worker.turn()
        sock, _ = self.listener.accept()
        self._open.append(sock)
        self.until(lambda: self._answers(sock))
        far = LinkEnd(sock)
        assert self.hear(far) == [SUBSCRIBE, "first", 1]
        far.say(SUBSCRIBED, "first")
        return far

    def _answers(self, sock: socket.socket) -> bool:
        sock.setblocking(False)
        try:
            question = sock.recv(4096)
        except BlockingIOError:
            return False
        assert b":peer" in question
        body = packed([":peer", 0, {"node": "owner", "worker": 0}])
        sock.send(len(body).to_bytes(2, "big") + body)
        return True

    def until(self, check: Any) -> Any:
        """Have turns until this is true."""
        deadline = time.monotonic() + 5 * time_factor()
        while not (found := check()):
            assert time.monotonic() < deadline, "not in time"
            self.worker.turn()
        return found

    def hear(self, far: LinkEnd) -> list[Any]:
        """Return the only message that comes."""
        messages = self.until(lambda: [each for each in far.look() if each[0] != SETTLED])
        assert len(messages) == 1, messages
        return list(messages[0])

    def expect(self, client: PubSubClient, data: bytes) -> None:
        """Have turns until the client gets this, and nothing else; nothing at all is the end."""
        got = b""
        if not data:
            self.until(client.has_input)
            got = client.socket.recv(1 << 20)
        while len(got) < len(data):
            self.until(client.has_input)
            got += client.socket.recv(1 << 20)
        self.worker.turn()
        assert got + (client.socket.recv(1 << 20) if data and client.has_input() else b"") == data

    def close(self) -> None:
        for sock in self._open:
            sock.close()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr("workers.nodes.probe.ANSWER_S", 3600.0)  # turns come when the test says so, and seem late
    worker = OneWorker()
    bench = Bench(worker)
    yield bench
    bench.close()
    worker.turn()
    worker.close()


# A node that subscribes, and is slow.


def fill(bench: Bench, publisher: PubSubClient, topic: bytes = b"t") -> int:
    """Publish until one is not acked at once; return how many were published."""
    for count in range(1, 200):
        publisher.write(publish(topic, BIG))
        bench.worker.turn()
        if not publisher.has_input():
            return count
        assert publisher.read(1) == ACK
    raise AssertionError("a node that reads nothing holds up nobody")


def subscribed(bench: Bench, *topics: str) -> LinkEnd:
    """Return a guest that subscribes to these."""
    guest = bench.guest()
    for topic in topics:
        guest.say(SUBSCRIBE, topic, 2)
        assert bench.hear(guest) == [SUBSCRIBED, topic]
    return guest


def test_a_publisher_waits_for_a_node_that_is_behind_until_it_is_not(bench: Bench) -> None:
    guest, publisher = subscribed(bench, "t"), bench.pubsub()
    count = fill(bench, publisher)
    publisher.write(publish(b"t", BIG))
    bench.worker.turn()
    assert not publisher.has_input()
    got: list[Any] = []
    bench.until(lambda: got.extend(guest.look()) or len(got) == count + 1)
    assert got == [[OFFER, "t", None, BIG, None]] * (count + 1)
    bench.expect(publisher, 2 * ACK)


def test_one_that_stays_behind_is_told_what_it_lost_and_holds_up_nobody(bench: Bench) -> None:
    guest, publisher = subscribed(bench, "t", "other"), bench.pubsub()
    count = fill(bench, publisher)
    bench.worker.turn(later=0.9)
    assert not publisher.has_input()
    bench.worker.turn(later=1.1)
    assert publisher.read(1) == ACK
    for _ in range(50):
        publisher.write(publish(b"t", BIG))
        bench.worker.turn()
        assert publisher.read(1) == ACK, "it gets nothing more, so nobody waits for it"
    got: list[Any] = []
    bench.until(lambda: got.extend(guest.look()) or len(got) >= count + 2)
    assert got[:count] == [[OFFER, "t", None, BIG, None]] * count
    assert sorted(got[count:]) == [[LAGGED, "other"], [LAGGED, "t"]]
    assert bench.worker.core.junction.subscribers(packed("t")) == []
    guest.say(SUBSCRIBE, "t", 1)
    assert bench.hear(guest) == [SUBSCRIBED, "t"]
    publisher.write(publish(b"t", b"anew"))
    assert bench.hear(guest) == [OFFER, "t", None, b"anew", None]


def test_a_node_that_goes_while_publishers_wait_for_it_holds_up_nobody(bench: Bench) -> None:
    guest, publisher = subscribed(bench, "t"), bench.pubsub()
    fill(bench, publisher)
    guest.socket.close()
    bench.expect(publisher, ACK)
    assert bench.worker.core.junction.subscribers(packed("t")) == []


def test_what_goes_to_the_publisher_alone_is_acked_with_it(bench: Bench) -> None:
    sibling = bench.sibling()
    sibling.say(SUBSCRIBE, "t", 1)
    assert bench.hear(sibling) == [SUBSCRIBED, "t"]
    sibling.say(PUBLISH, 7, "t", b"value", None)
    bench.worker.turn()
    packet = sibling.socket.recv(1 << 20)
    assert packed([OFFER, "t", 7, b"value", None]) in packet
    assert packet.endswith(packed([MET, 7]))


def test_nothing_is_published_at_a_worker_that_is_leaving(bench: Bench) -> None:
    guest, before = subscribed(bench, "t"), bench.pubsub()
    bench.worker.core.leave()
    for publisher in (before, bench.pubsub()):
        with contextlib.suppress(BrokenPipeError):
            publisher.write(publish(b"t", b"value"))
        bench.expect(publisher, b"")
    assert not guest.look()


# An owner that says anything.


def test_a_feed_asks_its_owner_for_all_who_subscribe_here(bench: Bench) -> None:
    owner, topic = bench.owner()
    one, other = bench.pubsub(), bench.pubsub()
    for client, count in ((one, 1), (other, 2)):
        client.write(subscribe(topic.encode()))
        assert bench.hear(owner) == [SUBSCRIBE, topic, count]
        assert not client.has_input()
        owner.say(SUBSCRIBED, topic)
        bench.expect(client, ACK)
    owner.say(OFFER, topic, None, b"hi", None)
    for client in (one, other):
        bench.expect(client, publish(topic.encode(), b"hi"))
    one.write(unsubscribe(topic.encode()))
    assert bench.hear(owner) == [SUBSCRIBE, topic, 1]
    # What was handed out before the owner knew of it is still for both.
    owner.say(OFFER, topic, None, b"before", None)
    owner.say(SUBSCRIBED, topic)
    owner.say(OFFER, topic, None, b"after", None)
    before, after = publish(topic.encode(), b"before"), publish(topic.encode(), b"after")
    bench.expect(one, before + ACK)
    bench.expect(other, before + after)


@pytest.mark.parametrize("count", [0, 2])
def test_what_a_sibling_asked_of_one_that_is_replaced_meanwhile_is_answered_and_has_no_effect(
    bench: Bench, count: int
) -> None:
    owner, topic = bench.owner()
    sibling = bench.sibling()
    sibling.say(SUBSCRIBE, topic, 1)
    assert bench.hear(owner) == [SUBSCRIBE, topic, 1]
    sibling.say(SUBSCRIBE, topic, count)
    assert bench.hear(owner) == [SUBSCRIBE, topic, count]
    bench.worker.core.siblings.hand_over()
    assert bench.hear(owner) == [SUBSCRIBE, topic, 0]
    assert bench.hear(sibling) == [RETIRED, None]
    for _ in range(2):
        owner.say(SUBSCRIBED, topic)
        assert bench.hear(sibling) == [SUBSCRIBED, topic]
    owner.say(OFFER, topic, None, "hi", None)
    owner.say(SUBSCRIBED, topic)
    bench.worker.turn()
    assert not sibling.look()
    assert len(bench.worker.core.interests) == 1, "only that of the first topic"
    bench.pubsub().write(subscribe(b"first"))
    assert bench.hear(owner) == [SUBSCRIBE, "first", 2]


def test_subscribers_of_a_topic_that_lagged_are_cut_off_and_no_others(bench: Bench) -> None:
    owner, topic = bench.owner()
    cut, stays = bench.pubsub(), bench.pubsub()
    for client, name in ((cut, topic), (stays, "another")):
        client.write(subscribe(name.encode()))
        bench.hear(owner)
        owner.say(SUBSCRIBED, name)
        bench.expect(client, ACK)
    owner.say(LAGGED, topic)
    bench.expect(cut, b"")
    assert bench.hear(owner) == [SUBSCRIBE, topic, 0]
    owner.say(OFFER, "another", None, "hi", None)
    bench.expect(stays, publish(b"another", b"hi"))
    assert bench.worker.core.connections.subscribers_cut_off == 1


def test_one_that_waits_and_has_been_told_is_not_dialled_again(bench: Bench) -> None:
    bench.owner()
    bench.guest("owner", life="", waits=True)
    bench.worker.turn(later=2 * PARTING_S)
    bench.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        bench.listener.accept()


def test_one_of_whom_nothing_is_wanted_is_dialled_if_it_waits(bench: Bench) -> None:
    bench.part_from_owner()
    bench.listener.settimeout(0.1)
    with pytest.raises(TimeoutError):
        bench.listener.accept()
    bench.guest("owner", life="another", waits=True)
    bench.listener.accept()[0].close()
