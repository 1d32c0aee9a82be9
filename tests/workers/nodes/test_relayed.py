"""Two ends of a relayed link, and siblings that it passes: what one writes the other reads, whatever way it goes."""

from __future__ import annotations

import contextlib
import os
import random
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import pytest

from skywalker.members import Place
from skywalker.wire import pubsub, values
from tests.simulation.scale import members
from tests.workers.core.clusters import Cluster, Layout, pair
from tests.workers.core.worlds import LIMITS, MemoryWorker, Settings, Wire, World
from workers.calls.newcomer import Newcomer
from workers.calls.own_node import VERSION
from workers.engine.transport import PlainSocket
from workers.mesh.link import OURS
from workers.mesh.messages import RELAY
from workers.mesh.stream import OTHER_WAY, Stream
from workers.nodes.relayed import PIECE, WINDOW, Relayed
from workers.nodes.relays import Passage, relay_of
from workers.stats.hands import Hands

HISTORIES: Final = int(os.environ.get("SKYWALKER_HISTORIES", "200"))


class Turn:
    """As far as an alarm needs it; none of them rings."""

    now = 0.0

    def set_alarm(self, alarm: Any, at: float) -> int:
        return 1

    def drop_alarm(self, number: int) -> None: ...


class LinkEnd:
    """One end of a link, as far as streams need it."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.parts = False
        self.place: Place | None = None
        self.handle = 0
        self.coming: deque[tuple[int, bytes]] = deque()
        self.other: LinkEnd
        self.opened: Any = None
        self._asked = 0
        self._is_closed = False

    def open_stream(self, listener: Any) -> Stream:
        self._asked += 1
        return Stream(self, (OURS | self._asked) ^ OTHER_WAY, listener)  # type: ignore[arg-type]  # as far as it needs it

    def say_of(self, number: int, word: bytes) -> None:
        if not self._is_closed:
            self.other.coming.append((number, word))

    def hear_one(self) -> None:
        number, word = self.coming.popleft()
        if number in self.streams:
            self.streams[number].listener.heard(self.streams[number], word)
        elif number >> 56 == OURS >> 56 and isinstance(values.unpack(word), dict):
            self.opened(Stream(self, number, None), word)  # type: ignore[arg-type]  # who hears it is yet to be set

    def close(self) -> None:
        self._is_closed = True
        self.coming.clear()
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.listener.cut(stream)


def link() -> tuple[LinkEnd, LinkEnd]:
    ends = LinkEnd(), LinkEnd()
    ends[0].other, ends[1].other = ends[1], ends[0]
    return ends


class Sibling:
    """One that relays, between a link within the node and one to the other."""

    def __init__(self) -> None:
        self.ours, near = link()
        far, self.theirs = link()
        self.passing: set[Passage] = set()
        self.ends = [self.ours, near, far, self.theirs]
        near.opened = self._passes
        self._far = far

    def _passes(self, stream: Stream, word: bytes) -> None:
        passage = Passage(stream, word, Place("", 0), "", self)  # type: ignore[arg-type]  # as far as it needs it
        self.passing.add(passage)
        passage.leads(self._far)  # type: ignore[arg-type]  # the same

    def forget(self, passage: Passage) -> None:
        self.passing.discard(passage)

    def pass_all(self, settle: Callable[[], None]) -> None:
        """Relay all that there is, and what the workers at its ends say to that."""
        settle()
        while any(end.coming for end in self.ends):
            for end in self.ends:
                while end.coming:
                    end.hear_one()
            settle()

    def die(self) -> None:
        for end in (self.ours, self.theirs):
            end.close()
        for end in self.ends:
            end.coming.clear()

    def on_its_way(self) -> int:
        """Return the bytes that are, in the direction with more of them."""
        count = [sum(len(word) - 3 for _, word in end.coming if word[0] in b"\xc4\xc5") for end in self.ends]
        return max(count[0] + count[2], count[1] + count[3])


class User:
    """What the core does with one end."""

    def __init__(self, relayed: Relayed, luck: random.Random) -> None:
        self.relayed = relayed
        self.said = luck.randbytes(luck.choice([10, 1000, PIECE, 3 * WINDOW]))
        self.written = 0
        self.heard = bytearray()
        self.other = self

    def write(self, most: int) -> None:
        with contextlib.suppress(BlockingIOError):
            self.written += self.relayed.send(self.said[self.written : self.written + most])

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = self.relayed.recv(65_536)
            assert data == self.other.said[len(self.heard) :][: len(data)]
            self.heard += data

    @property
    def has_all(self) -> bool:
        return len(self.heard) == len(self.other.said)


def made(sibling: Sibling) -> tuple[Relayed, Relayed]:
    """Return both ends of one that passes a sibling."""
    ends: list[Relayed] = []
    sibling.theirs.opened = lambda stream, word: ends.append(Relayed(stream, Turn(), None))  # type: ignore[arg-type]
    stream = sibling.ours.open_stream(None)
    stream.say(values.pack({}))
    ends.append(Relayed(stream, Turn(), 1))  # type: ignore[arg-type]  # as far as it needs it
    while any(end.coming for end in sibling.ends):
        for end in sibling.ends:
            if end.coming:
                end.hear_one()
    return ends[0], ends[1]


def goes_on(relayed: Relayed, sibling: Sibling) -> None:
    """Have the other end go on by another sibling when it is asked to."""

    def opened(stream: Stream, word: bytes) -> None:
        relayed.goes_on(stream, values.unpack(word)["way"])

    sibling.theirs.opened = opened


@pytest.mark.parametrize("part", range(2))
def test_what_is_written_is_read_whatever_way_it_goes(part: int) -> None:
    for seed in range(part * HISTORIES // 2, (part + 1) * HISTORIES // 2):
        history(random.Random(seed))


def history(luck: random.Random) -> None:
    sibling = Sibling()
    ours, theirs = made(sibling)
    users = User(ours, luck), User(theirs, luck)
    siblings, changes = [sibling], luck.randint(0, 6)
    users[0].other, users[1].other = users[::-1]
    while changes or not all(user.has_all for user in users):
        step = luck.random()
        if step < 0.02 and changes:
            changes -= 1
            if luck.random() < 0.5:
                for each in siblings:
                    each.die()
            siblings.append(Sibling())
            goes_on(theirs, siblings[-1])
            ours.go_by(siblings[-1].ours, {"to": ""})  # type: ignore[arg-type]  # as far as it needs it
        elif step < 0.3:
            luck.choice(users).write(luck.choice([1, 100, 1_000_000]))
        elif step < 0.4:
            luck.choice(users).read()
        else:
            coming = [end for each in siblings for end in each.ends if end.coming]
            if coming:
                luck.choice(coming).hear_one()
        most = 2 * WINDOW if len(siblings) > 1 else WINDOW  # what is said again may have been read meanwhile
        assert all(each.on_its_way() <= most for each in siblings)
    for user in users:
        user.relayed.close()
    for end in [end for each in siblings for end in each.ends] * 8:
        while end.coming:
            end.hear_one()
    assert not siblings[-1].passing
    assert not any(end.streams for each in siblings for end in (each.ours, each.theirs))


def test_one_that_is_not_read_holds_no_more_than_a_window() -> None:
    sibling = Sibling()
    ours, theirs = made(sibling)
    user = User(ours, random.Random(1))
    user.said = bytes(10 * WINDOW)
    for _ in range(20):
        user.write(WINDOW)
        for end in sibling.ends:
            while end.coming:
                end.hear_one()
    assert user.written == WINDOW
    other = User(theirs, random.Random(1))
    other.other = user
    other.read()
    assert len(other.heard) == WINDOW


class Unlinked(Layout):
    def links(self) -> list[tuple[int, int]]:
        return []


class Published:
    """A publisher at the owner of a topic, whose link to the worker of the subscriber passes a sibling."""

    def __init__(self) -> None:
        layout = Unlinked([0, 1], random.Random(1))
        layout.both_ways = True
        self._cluster, self._sibling = Cluster(layout, LIMITS, 1), Sibling()
        for at, relayed in enumerate(made(self._sibling)):
            self._link(at, relayed)
        self._topic = layout.published_to(0)
        self._publishing, self._subscriber = self._connect(0), self._connect(1)
        self._subscriber.coming += pubsub.subscribe(self._topic)
        self.passes()
        self._subscriber.taken.clear()

    def _link(self, at: int, relayed: Relayed) -> None:
        worker = self._cluster.workers[at]
        owner, links = worker.far[1 - at], worker.hub.siblings._links
        link = links.abroad(relayed, owner.place, lambda link, reason: owner.lost(link), both_ways=True)
        owner.met(link)
        relayed.serves(link)

    def _connect(self, at: int) -> Wire:
        wire = self._cluster.worlds[at].wires[50] = Wire(50)
        wire.room = 10**6
        self._cluster.workers[at].connect(50, pubsub=True)
        return wire

    def settle(self, seconds: float = 0.0) -> None:
        self._cluster.pass_until(self._cluster.now + seconds)
        self._cluster.settle()

    def passes(self) -> None:
        """Have the sibling relay all that there is."""
        self._sibling.pass_all(self.settle)

    def publish(self) -> None:
        self._publishing.coming += pubsub.publish(self._topic, b"payload")
        self.settle()

    @property
    def acks(self) -> int:
        return len(self._publishing.taken)

    @property
    def messages(self) -> int:
        return self._subscriber.taken.count(b"payload")


def test_nothing_that_is_published_is_acked_before_the_other_end_has_read_it() -> None:
    published = Published()
    published.publish()
    assert (published.acks, published.messages) == (0, 0), "whoever dies now takes it with it"
    published.passes()
    assert (published.acks, published.messages) == (1, 1)
    published.publish()
    published.publish()
    assert published.acks == 1
    published.passes()
    assert (published.acks, published.messages) == (3, 3)


def test_nobody_waits_for_another_end_that_reads_nothing_for_long() -> None:
    published = Published()
    published.publish()
    published.settle(0.9)
    assert published.acks == 0
    published.settle(0.2)
    assert published.acks == 1
    published.publish()
    assert (published.acks, published.messages) == (2, 0)
    published.passes()
    assert published.messages == 2
    published.publish()
    assert published.acks == 2, "it has read something since"
    published.passes()
    assert (published.acks, published.messages) == (3, 3)


@pytest.mark.parametrize("word", [1, -1, [1], [-1, 2], "text", b"", {}, True, 1.5, [], [None]])
def test_a_word_that_makes_no_sense_ends_it_alone(word: Any) -> None:
    sibling = Sibling()
    ours, theirs = made(sibling)
    for stream in [*sibling.theirs.streams.values()]:
        stream.say(values.pack(word))
    for end in sibling.ends * 8:
        while end.coming:
            end.hear_one()
    if word == b"":
        with pytest.raises(BlockingIOError):
            ours.recv(1)
        return
    for relayed in (ours, theirs):
        assert relayed.recv(1) == b""
    with pytest.raises(BrokenPipeError):
        ours.send(b"1")


def test_each_pair_has_one_connection_and_each_worker_as_many_as_others() -> None:
    for workers in range(1, 9):
        for their_workers in range(1, 9):
            connected = [
                (ours, theirs)
                for ours in range(workers)
                for theirs in range(their_workers)
                if relay_of(ours, workers, theirs, their_workers) == ours
            ]
            assert connected == [
                (ours, theirs)
                for ours in range(workers)
                for theirs in range(their_workers)
                if relay_of(theirs, their_workers, ours, workers) == theirs
            ]
            for ours in range(workers):
                count = sum(each == ours for each, _ in connected)
                assert 1 <= count <= -(-their_workers // min(workers, their_workers))
                for theirs in range(their_workers):
                    relay = relay_of(ours, workers, theirs, their_workers)
                    assert (relay, theirs) in connected


def test_a_question_that_is_heard_late_ends_no_link_that_was_made_since() -> None:
    ours, theirs = members(2, 2)
    world, hands = World(), Hands(1)
    hands.begin(0)
    worker = MemoryWorker(1, Settings(LIMITS), ours, 0, hands.hand(0), world)
    end, _ = pair((10_000, 10_001), is_stream=True)
    world.wires[end.fd] = end  # type: ignore[assignment]  # as it is for a link in clusters.py
    peers, here = worker.hub.peers, Place(ours.id, 0)
    asked = Newcomer("a node", Place(theirs.id, 1), "its life", False, False, True, 2.0, 0.0)
    peers.welcome(PlainSocket(end), b"", asked)  # type: ignore[arg-type]  # as there
    for newcomer, is_late in (
        (asked._replace(age_s=1.0), True),
        (asked._replace(age_s=3.0), False),
        (asked._replace(age_s=1.0, life="its successor's"), False),
    ):
        met, is_welcome = peers.meet(newcomer, here, relayed=True)
        assert met["crossed"] is is_late
        assert is_welcome is not is_late
    worker.core.shut()


def test_one_that_opens_is_linked_to_nobody_over_a_link_that_it_may_not_read_any_more() -> None:
    ours, theirs = members(2, 2)
    hands = Hands(1)
    hands.begin(0)
    worker = MemoryWorker(1, Settings(LIMITS, opens_late=True), ours, 0, hands.hand(0), World())
    asked = Newcomer("a node", Place(theirs.id, 1), "its life", False, False, True, 2.0, 0.0)
    for is_open in (False, True):
        if is_open:
            worker.open()
        for relayed in (False, True):
            met, is_welcome = worker.hub.peers.meet(asked, Place(ours.id, 0), relayed=relayed)
            assert met["crossed"] is (relayed and not is_open)
            assert is_welcome is not met["crossed"]
    worker.core.shut()


@pytest.mark.parametrize("way", [float("inf"), 1.5, "1", None])
def test_who_asks_to_go_no_way_loses_its_link_and_nobody_else_anything(way: Any) -> None:
    ours, theirs = members(2, 2)
    world, hands = World(), Hands(1)
    hands.begin(0)
    worker = MemoryWorker(1, Settings(LIMITS), ours, 0, hands.hand(0), world)
    by, _ = pair((10_000, 10_001), is_stream=True)
    world.wires[by.fd] = by  # type: ignore[assignment]  # as it is for a link in clusters.py
    transports: list[Any] = [PlainSocket(by), made(Sibling())[1]]  # type: ignore[arg-type]  # as there
    for number, transport in enumerate(transports):
        newcomer = Newcomer("a node", Place(theirs.id, number), f"life {number}", False, False, True, 2.0, 0.0)
        worker.hub.peers.welcome(transport, b"", newcomer)
    direct, _relayed = worker.hub.peers.asking

    options = {"from": theirs.id, "by": 1, "life": "life 1", "node": ours.id, "worker": 0, "version": VERSION}
    word = values.pack({**options, "to": "", "way": way})
    links: Any = worker.core.linking
    links.said(direct.link.handle, RELAY, OURS | 1, None, word, None, 0)
    worker.settle()
    assert direct.link.closed
    worker.core.shut()


def test_one_whose_worker_leaves_ends_once_the_other_end_has_read_all() -> None:
    ours, theirs = members(2, 2)
    hands = Hands(1)
    hands.begin(0)
    worker = MemoryWorker(1, Settings(LIMITS), ours, 0, hands.hand(0), World())
    sibling = Sibling()
    far, near = made(sibling)
    newcomer = Newcomer("a node", Place(theirs.id, 1), "its life", False, False, True, 2.0, 0.0)
    worker.hub.peers.welcome(near, b"", newcomer)
    [link] = worker.hub.peers.asking
    link.link.settle()

    sibling.pass_all(worker.settle)
    worker.hub.leave()
    worker.hub.peers.hand_over()
    sibling.pass_all(worker.settle)
    assert not far.ended, "what is not read is lost with the sibling, and nobody says it again"
    assert far.recv(65_536)
    sibling.pass_all(worker.settle)
    worker.hub.peers.hand_over()
    sibling.pass_all(worker.settle)
    assert far.ended
    assert not worker.hub.peers.have_left()
    far.recv(65_536)
    far.close()
    sibling.pass_all(worker.settle)
    assert worker.hub.peers.have_left()
    worker.core.shut()
