"""Both ends of a link, moved by hand: a node that subscribes and is slow, an owner that says anything."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from skywalker.address import Address
from skywalker.members import Member, Snapshot
from skywalker.ring import random_tokens
from tests.helpers import time_factor
from tests.workers.one_worker import OneWorker
from tests.workers.pubsub_client import ACK, PubSubClient, publish, subscribe, unsubscribe
from tests.workers.turns import life
from tests.workers.wire_client import call, packed
from workers.calls.own_node import VERSION
from workers.doors.pubsub import PubSub
from workers.engine.transport import PlainSocket
from workers.mesh.messages import (
    BUSY,
    CENSUS,
    COUNTED,
    GIVE,
    LAGGED,
    LISTEN,
    MET,
    OFFER,
    PUBLISH,
    RETIRED,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
    TOOK,
    WITHDRAWN,
)
from workers.nodes.outbound_peer import PARTING_S

BIG = bytes(60_000)


class Far:
    """The other end of a link of the worker."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._input = b""

    def say(self, *elements: Any) -> None:
        body = packed(elements)
        self.socket.send(len(body).to_bytes(4, "big") + body)

    def heard(self) -> list[list[Any]]:
        """Return the messages that are here; who asks whether we live is told."""
        with contextlib.suppress(BlockingIOError):
            while data := self.socket.recv(1 << 20):
                self._input += data
        found = []
        while len(self._input) >= 4 and len(self._input) >= 4 + (size := int.from_bytes(self._input[:4], "big")):
            message = msgpack.unpackb(self._input[4 : 4 + size], strict_map_key=False)
            self._input = self._input[4 + size :]
            if message[0] == CENSUS:
                self.say(COUNTED, message[1], b"")
            elif message[0] != SETTLED:
                found.append(message)
        return found


class Noting(socket.socket):
    """One that keeps what was written to it, beside all that others kept."""

    notes: list[tuple[Noting, bytes]]

    def send(self, data: Any, flags: int = 0) -> int:
        self.notes.append((self, bytes(data)))
        return super().send(data, flags)


class Bench:
    """One worker, and who is connected to it."""

    def __init__(self, worker: OneWorker) -> None:
        self.worker = worker
        self.notes: list[tuple[Noting, bytes]] = []
        self._open: list[socket.socket] = []

    def pair(self, kind: socket.SocketKind = socket.SOCK_STREAM) -> tuple[socket.socket, Noting]:
        """Return both ends of a connection, the second for the worker."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self._open.append(ours)
        noting = Noting(fileno=theirs.detach())
        noting.notes = self.notes
        noting.setblocking(False)
        return ours, noting

    def pubsub(self) -> PubSubClient:
        """Return a client of the pub/sub dialect."""
        ours, theirs = self.pair()
        self.worker.core.connections.opened(PubSub(PlainSocket(theirs), "test", self.worker.core.commons))
        return PubSubClient(ours)

    def guest(self, name: str = "guest", **options: Any) -> Far:
        """Return a node that asks this one."""
        client = self.worker.connect()
        self._open.append(client.socket)
        who = {"from": name, "by": 0, "node": self.worker.member.id, "worker": 0, "version": VERSION}
        client.write(call(":peer", 0, who | options))
        self.worker.turn()
        assert client.reply()[2]["worker"] == 0
        return Far(client.socket)

    def sibling(self) -> Far:
        """Return a worker of this node that asks this one."""
        ours, theirs = self.pair(socket.SOCK_SEQPACKET)
        self.worker.core.siblings.serve(theirs, life())
        return Far(ours)

    def owner(self) -> tuple[Far, str]:
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

    def dialled(self) -> Far:
        """Return the owner as it has just been dialled, and told that somebody subscribes to its first topic."""
        self.worker.turn()
        sock, _ = self.listener.accept()
        self._open.append(sock)
        self.until(lambda: self._answers(sock))
        far = Far(sock)
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

    def hear(self, far: Far) -> list[Any]:
        """Return the only message that comes."""
        messages = self.until(far.heard)
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


def subscribed(bench: Bench, *topics: str) -> Far:
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
    bench.until(lambda: got.extend(guest.heard()) or len(got) == count + 1)
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
    bench.until(lambda: got.extend(guest.heard()) or len(got) >= count + 2)
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


def test_a_publisher_that_goes_while_it_waits_harms_nobody(bench: Bench) -> None:
    guest, publisher = subscribed(bench, "t"), bench.pubsub()
    count = fill(bench, publisher)
    publisher.close()
    bench.worker.turn()
    got: list[Any] = []
    bench.until(lambda: got.extend(guest.heard()) or len(got) == count)
    bench.worker.turn(later=5)


def test_others_are_given_what_a_slow_node_holds_up(bench: Bench) -> None:
    subscribed(bench, "t")
    publisher, listener = bench.pubsub(), bench.pubsub()
    listener.write(subscribe(b"t"))
    bench.expect(listener, ACK)
    count = 0
    while not count or publisher.has_input():
        if count:
            assert publisher.read(1) == ACK
        count += 1
        publisher.write(publish(b"t", BIG))
        bench.worker.turn()
        got = b""
        while len(got) < len(publish(b"t", BIG)):
            bench.worker.turn()
            got += listener.socket.recv(1 << 20)
        assert got == publish(b"t", BIG)
    other = bench.pubsub()
    other.write(publish(b"elsewhere", BIG))
    bench.expect(other, ACK)


def acked(data: bytes) -> bool:
    """Whether a client or a worker is told that something is in effect, or was answered."""
    return data.startswith(ACK) or packed([MET, 0])[:2] in data


def test_a_publish_is_acked_once_all_who_listen_were_written_to(bench: Bench) -> None:
    # One that is killed between two writes has acked nothing that others do not have.
    siblings = [bench.sibling() for _ in range(3)]
    for sibling in siblings:
        sibling.say(SUBSCRIBE, "t", 1)
        assert bench.hear(sibling) == [SUBSCRIBED, "t"]
    publishers = [bench.pubsub(), bench.pubsub()]
    for publisher in publishers:
        publisher.write(subscribe(b"t"))
        bench.expect(publisher, ACK)
    bench.notes.clear()
    for number, sibling in enumerate(siblings):
        sibling.say(PUBLISH, number, "t", b"sibling", None)
    for publisher in publishers:
        publisher.write(publish(b"t", b"client"))
    bench.worker.turn()
    given = [n for n, (_, data) in enumerate(bench.notes) if b"sibling" in data]
    assert sum(b"client" in bench.notes[n][1] for n in given) > len(siblings)
    last = [n for n, (_, data) in enumerate(bench.notes) if acked(data)]
    assert len(given) == len(last) == len(siblings) + len(publishers)
    assert max(given) < min(last)
    assert [sibling.heard()[-1] for sibling in siblings] == [[MET, number] for number in range(3)]
    for publisher in publishers:
        others = 0 if publisher is publishers[0] else 1  # that came before its own
        copies = [publish(b"t", b"client")] * 2
        bench.expect(publisher, b"".join([publish(b"t", b"sibling") * 3, *copies[:others], ACK, *copies[others:]]))


def test_a_publish_is_acked_once_one_that_waits_for_a_value_was_written_to(bench: Bench) -> None:
    publisher, waiting = bench.sibling(), bench.sibling()
    waiting.say(LISTEN, 1, 0.0, "t", None)
    bench.worker.turn()
    bench.notes.clear()
    publisher.say(SUBSCRIBE, "elsewhere", 1)  # so that it is the first to be written to
    publisher.say(PUBLISH, 7, "t", b"value", None)
    bench.worker.turn()
    assert [b"value" in data for _, data in bench.notes] == [False, True, False]
    assert [packed([MET, 7]) in data for _, data in bench.notes] == [False, False, True]


def test_what_goes_to_the_publisher_alone_is_acked_with_it(bench: Bench) -> None:
    sibling = bench.sibling()
    sibling.say(SUBSCRIBE, "t", 1)
    assert bench.hear(sibling) == [SUBSCRIBED, "t"]
    bench.notes.clear()
    sibling.say(PUBLISH, 7, "t", b"value", None)
    bench.worker.turn()
    assert sibling.heard() == [[OFFER, "t", 7, b"value", None], [MET, 7]]
    assert len(bench.notes) == 1


def test_one_that_publishes_and_changes_its_mind_in_turns_has_no_more_of_a_turn_than_others(bench: Bench) -> None:
    client = bench.pubsub()
    count = 20
    client.write((publish(b"t", b"") + unsubscribe(b"u")) * count)
    for done in range(count):
        bench.worker.loop.turn(bench.worker.core.turn, patient=False)
        assert client.has_input()
        assert client.socket.recv(1 << 20) == ACK * (2 if done else 1)
    bench.expect(client, ACK)


def test_nothing_is_published_at_a_worker_that_is_leaving(bench: Bench) -> None:
    guest, before = subscribed(bench, "t"), bench.pubsub()
    bench.worker.core.leave()
    for publisher in (before, bench.pubsub()):
        with contextlib.suppress(BrokenPipeError):
            publisher.write(publish(b"t", b"value"))
        bench.expect(publisher, b"")
    assert not guest.heard()


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
    assert not sibling.heard()
    assert len(bench.worker.core.interests) == 1, "only that of the first topic"
    bench.pubsub().write(subscribe(b"first"))
    assert bench.hear(owner) == [SUBSCRIBE, "first", 2]


def test_an_offer_with_a_number_is_taken_once_it_is_written(bench: Bench) -> None:
    owner, _ = bench.owner()
    owner.say(OFFER, "first", 5, "hi", None)
    assert bench.hear(owner) == [TOOK, 5]


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


def test_an_owner_with_a_successor_goes_on_while_that_is_told_who_subscribes(bench: Bench) -> None:
    before, _ = bench.owner()
    bench.guest("owner", life="another", waits=True)
    bench.worker.turn(later=1.1 * PARTING_S)
    after = bench.dialled()
    before.say(OFFER, "first", None, "before", None)
    bench.expect(bench.first, publish(b"first", b"before"))
    after.say(OFFER, "first", None, "after", None)
    bench.expect(bench.first, publish(b"first", b"after"))
    assert not before.heard()
    before.socket.close()
    bench.worker.turn()
    bench.first.write(unsubscribe(b"first"))
    assert bench.hear(after) == [SUBSCRIBE, "first", 0]


def test_what_is_published_to_a_successor_waits_for_what_the_owner_before_it_did_not_hand_out(bench: Bench) -> None:
    before, topic = bench.owner()
    client = bench.pubsub()
    client.write(publish(topic.encode(), b"1"))
    assert bench.hear(before)[0] == PUBLISH
    bench.guest("owner", life="another", waits=True)
    bench.worker.turn(later=1.1 * PARTING_S)
    after = bench.dialled()
    client.write(publish(topic.encode(), b"2"))
    bench.worker.turn()
    assert not after.heard()
    before.socket.close()
    published = []
    for _ in range(2):
        _, number, _, payload, _ = bench.hear(after)
        published.append(payload)
        body = b"\x92" + packed(MET) + b"\xcf" + number.to_bytes(8, "big")
        after.socket.send(len(body).to_bytes(4, "big") + body)
        bench.expect(client, ACK)
    assert published == [b"1", b"2"]


def test_a_successor_is_told_at_once_when_the_owner_before_it_has_gone(bench: Bench) -> None:
    before, _ = bench.owner()
    bench.guest("owner", life="another", waits=True)
    before.socket.close()
    bench.dialled()


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


def test_an_owner_that_dies_is_asked_again_by_who_waits(bench: Bench) -> None:
    owner, topic = bench.owner()
    client = bench.pubsub()
    client.write(subscribe(topic.encode()))
    bench.hear(owner)
    owner.socket.close()
    bench.worker.turn()
    assert not client.has_input()
    bench.worker.core.follow(Snapshot([bench.worker.member]))
    bench.expect(client, ACK)


@pytest.mark.parametrize("words", [
    (BUSY, "number"), (WITHDRAWN, "number"), (GIVE, "number", "value"), (MET, "number"),
    (SUBSCRIBED, "first"), (SUBSCRIBED, "topic"), (LAGGED, "topic"), (OFFER, "topic", None, "hi", None),
], ids=str)  # fmt: skip
def test_whatever_an_owner_says_of_a_publish_the_worker_lives_and_the_publisher_is_answered(
    bench: Bench, words: tuple[Any, ...]
) -> None:
    owner, topic = bench.owner()
    publisher = bench.pubsub()
    publisher.write(publish(topic.encode(), b"hi"))
    kind, number, name, value, form = bench.hear(owner)
    assert (kind, name, value, form) == (PUBLISH, topic, b"hi", None)
    said = [b"\xcf" + number.to_bytes(8, "big") if each == "number" else packed(each) for each in words]
    body = bytes((0x90 | len(said),)) + b"".join(said)
    owner.socket.send(len(body).to_bytes(4, "big") + body)
    bench.worker.turn()
    # It may have ended the link, and then asks again where the topic is owned now.
    bench.worker.core.follow(Snapshot([bench.worker.member]))
    owner.socket.close()
    bench.expect(publisher, ACK)


def test_one_that_waits_is_dialled_again_if_its_predecessor_was_met(bench: Bench) -> None:
    bench.part_from_owner()
    bench.guest("owner", life="another", waits=True)
    predecessor, _ = bench.listener.accept()
    bench.until(lambda: bench._answers(predecessor))
    bench.worker.turn()
    predecessor.close()
    bench.worker.turn()
    bench.listener.settimeout(5)
    bench.listener.accept()[0].close()
