"""How links between nodes begin and end, and what comes over them that the core leaves to others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice, pairwise
from typing import Final

import pytest

from skywalker.limits import Limits
from skywalker.ring import Ring, token_of
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from tests.workers.core.clusters import Cluster, End, Layout
from tests.workers.core.worlds import LIMITS, MemoryWorker, Plain, Wire
from workers.doors.junction.client import JunctionClient

NOTHING: Final = bytes.fromhex("0000000a 92 11 a7 6e6f7468696e67 0000000b 92 0c cf 0080000000000000")
"""That a subscription which is none is in effect, and a call that is none is given back."""

ASKER, OWNER = range(2)


class Two:
    """Two nodes, of one worker each, and a client at either."""

    def __init__(
        self, nodes: tuple[int, int] = (0, 1), *, is_sealed: bool = False, cut: int = 0, limits: Limits = LIMITS
    ) -> None:
        layout = Layout([*nodes], random.Random(1))
        layout.is_sealed = is_sealed
        layout.heard, layout.unwritten = NOTHING[:cut], NOTHING[cut:]
        self.cluster = Cluster(layout, limits, 1)
        self.topic = next(self.topics())
        self.wires = [self.connect(at, 50 + at) for at in range(2)]

    def topics(self) -> Iterator[bytes]:
        """Yield topics of the owner's, in one length after another."""
        ring = Ring.of_tokens(self.cluster.layout.tokens)
        topics = (values.pack(f"topic{number}" + "-" * (number % 13)) for number in count())
        return (topic for topic in topics if ring.owner(token_of(topic)) == OWNER)

    def connect(self, at: int, fd: int) -> Wire:
        wire_ = self.cluster.worlds[at].wires[fd] = Wire(fd)
        self.cluster.workers[at].connect(fd)
        return wire_

    @property
    def ends(self) -> list[End]:
        """Those of the link over which the asker asks."""
        return [self.cluster.ends[ASKER, OWNER], self.cluster.ends[ASKER, OWNER].other]

    def say(self, at: int, method: bytes, id: int, *rest: bytes) -> None:
        self.wires[at].coming += wire.frame(method, values.pack(id), *rest)
        self.cluster.settle()

    def told(self, at: int) -> list[list[bytes]]:
        frames, _ = split(bytes(self.wires[at].taken))
        self.wires[at].taken.clear()
        return [[*frame] for frame in frames]

    def shut(self) -> None:
        for worker in self.cluster.workers:
            worker.core.shut()


MS: Final = values.pack(60_000)


@pytest.mark.parametrize("is_sealed", [False, True], ids=["plain", "sealed"])
@pytest.mark.parametrize("cut", [0, 3, 14, 20, len(NOTHING)])
def test_a_link_may_begin_with_bytes(cut: int, is_sealed: bool) -> None:
    two = Two(is_sealed=is_sealed, cut=cut)
    two.say(ASKER, wire.RECV, 1, MS, two.topic)
    two.say(OWNER, wire.SEND, 2, MS, two.topic, values.pack("value"))
    assert two.told(ASKER) == [[wire.RECV, values.pack(1), values.pack("value")]]
    assert two.told(OWNER) == [[wire.SEND, values.pack(2), wire.TRUE]]
    two.shut()


@pytest.mark.parametrize("is_sealed", [False, True], ids=["plain", "sealed"])
def test_one_that_finishes_has_said_all_before_and_nobody_doubts(is_sealed: bool) -> None:
    two = Two(is_sealed=is_sealed)
    two.say(ASKER, wire.SEND, 1, MS, two.topic, values.pack("value"))
    asker, owner = two.ends
    owner.room = 0
    two.say(ASKER, wire.TOPIC, 2, two.topic)  # of which the answer cannot be written yet
    link = two.cluster.workers[OWNER].abroad[owner.fd]
    assert link.unsent
    link.finish()
    link.finish()
    two.cluster.settle()
    assert not asker.ended
    assert not two.told(ASKER)
    owner.room = 10**7
    two.cluster.settle()
    assert asker.is_closed
    assert owner.is_closed
    [(method, *_)] = two.told(ASKER)
    assert method == wire.TOPIC
    two.cluster.link(ASKER, OWNER)
    two.say(OWNER, wire.RECV, 3, MS, two.topic)
    assert two.told(ASKER) == [[wire.SEND, values.pack(1), wire.TRUE]]
    assert two.told(OWNER) == [[wire.RECV, values.pack(3), values.pack("value")]]
    two.shut()


@pytest.mark.parametrize("nodes", [(0, 0), (0, 1)], ids=["siblings", "nodes"])
def test_others_are_heard_between_what_comes_over_a_link(nodes: tuple[int, int]) -> None:
    two = Two(nodes, limits=replace(LIMITS, waiting_bytes=10**7, max_calls=10_000))
    asker, owner = two.cluster.workers
    calls, value = 1000, values.pack("v" * 1000)
    for id in range(calls):
        two.wires[ASKER].coming += wire.frame(wire.SEND, values.pack(id), MS, two.topic, value)
    while asker.one_turn():
        pass
    held = [0]
    while held[-1] < calls:
        owner.one_turn()
        held.append(owner.core.holds["rows"])
    assert max(after - before for before, after in pairwise(held)) <= 128
    two.shut()


@pytest.mark.parametrize("nodes", [(0, 0), (0, 1)], ids=["siblings", "nodes"])
def test_a_topic_is_counted_where_it_is_owned(nodes: tuple[int, int]) -> None:
    two = Two(nodes)
    two.say(OWNER, wire.RECV, 1, MS, two.topic)
    two.say(ASKER, wire.RECV, 1, MS, two.topic)
    for at in (ASKER, OWNER):
        two.say(at, wire.TOPIC, 2, two.topic)
    [asked], [owned] = two.told(ASKER), two.told(OWNER)
    assert asked == owned
    assert values.unpack(asked[2], text_keys=True)["receivers"] == 2
    two.shut()


MANY: Final = 8_000
"""Calls that wait at one other worker; as soon as there are some 1,000, more of them need no place for their topics."""


@pytest.mark.parametrize("nodes", [(0, 0), (0, 1)], ids=["siblings", "nodes"])
def test_many_that_wait_elsewhere_keep_their_topics_without_a_place_for_each(nodes: tuple[int, int]) -> None:
    two = Two(nodes, limits=replace(LIMITS, max_calls=MANY, waiting_bytes=10**7))
    topics = [*islice(two.topics(), MANY)]
    asker = two.cluster.workers[ASKER].core
    for id, topic in enumerate(topics):
        two.wires[ASKER].coming += wire.frame(wire.RECV, values.pack(id), MS, topic)
    two.cluster.settle()
    assert asker.holds["calls"] == MANY
    assert asker.holds["spots"] < 0.8 * MANY
    two.cluster.kill(OWNER)
    two.cluster.settle()
    assert asker.holds["spots"] == MANY, "they wait here until there is an owner again"
    two.cluster.link(ASKER, OWNER)
    two.wires[OWNER] = two.connect(OWNER, 60)
    two.cluster.settle()
    assert asker.holds["spots"] < 0.8 * MANY
    for id, topic in enumerate(topics):
        two.wires[OWNER].coming += wire.frame(wire.SEND, values.pack(id), MS, topic, topic)
    two.cluster.settle()
    given = [(values.unpack(id), value) for _, id, value in two.told(ASKER)]
    assert sorted(given) == [*enumerate(topics)]
    assert [result for _, _, result in two.told(OWNER)] == [wire.TRUE] * MANY
    assert not asker.holds["spots"]
    two.shut()


def test_who_had_no_room_goes_on_once_what_took_it_is_taken_back() -> None:
    two = Two((0, 0))
    topics = [*islice(two.topics(), 3)]
    for id, topic in enumerate(topics):
        two.say(OWNER, wire.RECV, id, MS, topic)
    two.ends[1].is_delayed = True  # so that the owner hears in one turn of all that follows
    leaver = two.connect(ASKER, 60)
    for id, topic in enumerate(topics[:2]):
        leaver.coming += wire.frame(wire.SEND, values.pack(id), MS, topic, values.pack("-" * 15_000))
    two.cluster.settle()
    two.say(ASKER, wire.SEND, 2, MS, topics[2], values.pack("value"))
    leaver.ended = True
    two.cluster.settle()
    two.ends[1].is_delayed = False
    two.cluster.settle()
    assert two.told(OWNER) == [[wire.RECV, values.pack(2), values.pack("value")]]
    assert two.told(ASKER) == [[wire.SEND, values.pack(2), wire.TRUE]]
    two.shut()


@pytest.mark.parametrize("method", [wire.RECV, wire.TAKE, wire.SEND])
def test_a_cancel_of_a_call_that_has_no_time_and_waits_elsewhere_is_answered_behind_it(method: bytes) -> None:
    two = Two()
    call, cancel = values.pack(1), values.pack(2)
    rest = () if method == wire.RECV else (values.pack("group or value"),)
    two.wires[ASKER].coming += wire.frame(wire.CANCEL, cancel, call)
    two.wires[ASKER].coming[:0] = wire.frame(method, call, values.pack(0), two.topic, *rest)
    two.cluster.settle()
    two.cluster.pass_until(two.cluster.now + 1.0)
    two.cluster.settle()
    assert [each[:2] for each in two.told(ASKER)] == [[method, call], [wire.CANCEL, cancel]]
    two.shut()


def packed(*elements: bytes) -> bytes:
    body = bytes((0x90 | len(elements),)) + b"".join(elements)
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("form", [b"\x07\x01no zlib", b"\x07\x00more", b"\x07"], ids=["broken", "unsqueezed", "short"])
def test_a_form_that_makes_no_sense_ends_the_link_alone(form: bytes) -> None:
    two = Two()
    asker, owner = two.ends
    number = b"\xcf\x00" + bytes(6) + b"\x01"
    owner.coming.append(packed(b"\x06", number, two.topic, wire.NIL, b"\xc4" + bytes((len(form),)) + form))
    two.cluster.settle()
    assert owner.is_closed
    assert asker.is_closed
    two.cluster.link(ASKER, OWNER)
    two.say(ASKER, wire.SEND, 1, MS, two.topic, values.pack("value"))
    two.say(OWNER, wire.RECV, 2, MS, two.topic)
    assert two.told(ASKER) == [[wire.SEND, values.pack(1), wire.TRUE]]
    two.shut()


class Whispering(Plain):
    """One that has read something before its descriptor was anybody's, and tells of it as it is read."""

    def __init__(self, wire_: Wire, said: bytes) -> None:
        super().__init__(wire_)
        self._said = said
        self.recv = self._recv

    def _recv(self, size: int) -> bytes:
        said, self._said = self._said, b""
        return said or self._wire.recv(size)


def test_what_came_with_the_end_of_a_handshake_is_heard() -> None:
    worker = MemoryWorker()
    wire_ = worker.world.wires[50] = Wire(50)
    transport = Whispering(wire_, wire.frame(wire.PING, values.pack(1)))
    client = worker.hub.clients.let_in(JunctionClient, 50, "test", transport=transport)
    worker.settle()
    assert not wire_.taken, "nothing tells of it"
    worker.core.read(client.handle)
    worker.settle()
    assert wire_.taken == wire.frame(wire.PING, values.pack(1), wire.TRUE)
    worker.core.shut()
