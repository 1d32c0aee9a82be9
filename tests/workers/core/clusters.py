"""Several workers that are linked among themselves, on a network in memory: siblings, and workers of other nodes.

Between nodes a link is a stream, and may take any number of bytes; between siblings it keeps packets whole, so that a
test says only whether it takes any.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections import deque
from collections.abc import Callable
from typing import Final

from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member, Place, PlaceRing, Share
from skywalker.ring import Ring, token_of
from skywalker.wire import pubsub
from tests.workers.core.worlds import RECORD, MemoryWorker, Settings, Wire, World
from workers.calls.owner import Owner
from workers.engine.loop import READ, WRITE
from workers.engine.transport import PlainSocket
from workers.mesh.link import Link
from workers.stats.hands import Hand, Hands

HUP: Final = 16


class End:
    """One end of a link, as a Wire is of a connection."""

    def __init__(self, fd: int, is_stream: bool) -> None:
        self.fd = fd
        self.is_stream = is_stream
        self.coming: deque[bytes] = deque()
        self.passed: deque[Wire | None] = deque()  # with each packet
        self.other: End
        self.is_delayed = False  # nothing of what comes is here yet
        self.ended = False  # nothing comes behind that
        self.room = 10_000_000  # bytes that it takes, or of packets whether it takes any
        self.written = 0  # bytes in all
        self.packets = 0  # or writes
        self.is_shut = self.is_closed = False
        self.mask = READ

    def recv_passed(self, size: int) -> tuple[bytes, Wire | None]:
        has_some = self.coming and not self.is_delayed and not self.is_stream
        return self._take(size), self.passed.popleft() if has_some else None

    def send_passing(self, data: bytes, passed: Wire | None) -> int:
        sent = self.send(data)
        self.other.passed[-1] = passed
        return sent

    def recv(self, size: int) -> bytes:
        data, passed = self.recv_passed(size)
        if passed is not None:
            passed.close()  # nobody asks for it
        return data

    def _take(self, size: int) -> bytes:
        if self.coming and not self.is_delayed:
            data = self.coming.popleft()
            while self.is_stream and self.coming and len(data) < size:
                data += self.coming.popleft()
            if len(data) > size:
                assert self.is_stream, "a packet is read whole"
                self.coming.appendleft(data[size:])
            return data[:size]
        if self.ended and not self.is_delayed:
            return b""
        raise BlockingIOError(11, "nothing is there")

    def send(self, data: bytes) -> int:
        if self.other.is_closed or self.ended or self.is_shut:
            raise BrokenPipeError(32, "the other end is dead")
        if not self.room:
            raise BlockingIOError(11, "it is full")
        size = min(self.room, len(data)) if self.is_stream else len(data)
        if self.is_stream:
            self.room -= size
        if size:
            self.other.coming.append(data[:size])
            self.packets += 1
            if not self.is_stream:
                self.other.passed.append(None)
        return size

    def close(self) -> None:
        self.is_closed = True
        self.other.ended = True
        for wire_ in self.passed:
            if wire_ is not None:
                wire_.close()
        self.passed.clear()

    def shut(self) -> None:
        self.is_shut = self.other.ended = True

    def fileno(self) -> int:
        return self.fd

    detach = fileno

    def ready(self) -> int:
        is_broken = self.ended and not self.is_delayed
        mask = 0
        if self.mask & READ and (is_broken or (self.coming and not self.is_delayed)):
            mask |= READ
        if self.mask & WRITE and (self.room or self.ended):
            mask |= WRITE
        return mask | (HUP if is_broken else 0)


class SealedEnd:
    """One that is written in records, each of which counts once all of it is, and that tells of its end at once."""

    def __init__(self, end: End) -> None:
        self._end = end
        self._left = self.begun = 0
        self.ended = False
        self.fileno = end.fileno
        self.close = end.close

    def recv(self, size: int) -> bytes:
        data = self._end.recv(min(size, 3 * RECORD))
        self.ended = self._end.ended and not self._end.coming
        return data

    def send(self, data: bytes) -> int:
        gone = 0
        while gone < len(data):
            if not self.begun:
                self.begun = self._left = min(RECORD, len(data) - gone)
            at = gone + self.begun - self._left
            with contextlib.suppress(BlockingIOError):
                self._left -= self._end.send(data[at : gone + self.begun])
            if self._left:
                break
            gone += self.begun
            self.begun = 0
        if not gone and data:
            raise BlockingIOError
        return gone

    def shutdown(self, how: int) -> None:
        self._end.shut()

    def detach(self) -> None:
        pass


def pair(fds: tuple[int, int], is_stream: bool) -> tuple[End, End]:
    one, other = End(fds[0], is_stream), End(fds[1], is_stream)
    one.other, other.other = other, one
    return one, other


class Layout:
    """Which workers there are: the node of each, and its slot on that."""

    def __init__(self, nodes: list[int], random_: random.Random) -> None:
        self.places = [Place(f"n{node}", nodes[:at].count(node)) for at, node in enumerate(nodes)]
        self.nodes = nodes
        tokens = sorted({random_.randrange(-(2**63), 2**63) for _ in range(8 * len(nodes))})
        self.tokens = {token: at % len(nodes) for at, token in enumerate(tokens)}
        # Between nodes:
        self.is_sealed = False  # what a link carries
        self.both_ways = False  # one for what both ask, made by the first; else each has its own
        self.unwritten = b""  # what those who are asked have yet to say as one begins
        self.heard = b""  # and what came before that

    def are_siblings(self, one: int, other: int) -> bool:
        return self.nodes[one] == self.nodes[other]

    def siblings(self, at: int) -> list[int]:
        return [other for other in range(len(self.nodes)) if other != at and self.are_siblings(at, other)]

    def links(self) -> list[tuple[int, int]]:
        """Return who is linked with whom; between nodes the first asks, and the second answers."""
        count = range(len(self.nodes))
        return [(one, other) for one in count for other in count
                if (one < other if self.both_ways or self.are_siblings(one, other) else one != other)]  # fmt: skip

    def published_to(self, at: int) -> bytes:
        """Return a topic of the pub/sub door that a worker owns."""
        ring = Ring.of_tokens(self.tokens)
        topics = (b"topic%d" % number for number in range(10))
        return next(topic for topic in topics if ring.owner(token_of(pubsub.bus_topic(topic))) == at)

    def ring(self) -> PlaceRing:
        """Return who owns which topics."""
        return PlaceRing({token: Share(*self.places[at], 1) for token, at in self.tokens.items()})


class LinkedWorker(MemoryWorker):
    """One of several, of which `at` is which."""

    def __init__(
        self, world: World, layout: Layout, at: int, hand: Hand, limits: Limits, seed: int, *, opens_late: bool = False
    ) -> None:
        self.layout, self.at = layout, at
        place, workers = layout.places[at], layout.nodes.count(layout.nodes[at])
        member = Member(place.node, place.node, Address("127.0.0.1", 1), workers, False, tuple(range(1, 1 + workers)))
        super().__init__(seed + at, Settings(limits, opens_late=opens_late), member, place.worker, hand, world)
        self.far = {
            other: Owner(self.core, place)
            for other, place in enumerate(layout.places)
            if not layout.are_siblings(at, other)
        }
        self.abroad: dict[int, Link] = {}  # links to other nodes, by descriptor
        owners = {owner.place: owner for owner in (*self.hub.siblings.owners, *self.far.values())}
        self.hub.owners.follow(layout.ring(), owners)

    def link(self, other: int, end: End, life: bytes) -> None:
        """Have a link to a sibling, or ask a worker of another node."""
        if self.layout.are_siblings(self.at, other):
            self.hub.siblings.connect(self.layout.places[other].worker, end.fd, life)
            return
        self._ask(end, other, came=False)

    def hears_of(self, end: End, slot: int, life: bytes) -> None:
        """Have a link to the successor of a sibling, or to its own."""
        self.world.wires[end.fd] = end  # type: ignore[assignment]
        self.hub.siblings.connect(slot, end.fd, life)

    def serve(self, other: int, end: End) -> None:
        """Be asked by a worker of another node; ask it as well, where links go both ways."""
        if self.layout.both_ways:
            self._ask(end, other, came=True)
        else:
            self._abroad(end, None, lambda link, reason: None, came=True)

    def _ask(self, end: End, other: int, came: bool) -> None:
        owner = self.far[other]
        owner.met(self._abroad(end, owner.place, lambda link, reason: owner.lost(link), came))

    def _abroad(self, end: End, place: Place | None, ended: Callable[[Link, str], None], came: bool) -> Link:
        layout = self.layout
        self.abroad[end.fd] = link = self.hub.siblings._links.abroad(
            SealedEnd(end) if layout.is_sealed else PlainSocket(end),  # type: ignore[arg-type]  # all that is asked of one
            place,
            ended,
            both_ways=layout.both_ways,
            unwritten=layout.unwritten if came else b"",
            heard=b"" if came else layout.heard,
        )
        return link


class Cluster:
    """All of them, with one clock."""

    def __init__(self, layout: Layout, limits: Limits, seed: int) -> None:
        count = len(layout.nodes)
        self.layout, self.limits, self.seed = layout, limits, seed
        self.hands = Hands(count)
        self.worlds = [World() for _ in range(count)]
        for at in range(count):
            self.hands.begin(at)
        self.workers = [self._worker(at) for at in range(count)]
        self.ends: dict[tuple[int, int], End] = {}  # of a link, by who has this end and who has the other
        self.all_ends: list[End] = []  # also those of links that others are in place of
        self.replaced: list[LinkedWorker] = []
        self.fds = 1_000
        for one, other in layout.links():
            self.link(one, other)

    def _worker(self, at: int, *, opens_late: bool = False) -> LinkedWorker:
        hand = self.hands.hand(at)
        return LinkedWorker(self.worlds[at], self.layout, at, hand, self.limits, self.seed, opens_late=opens_late)

    def link(self, one: int, other: int) -> None:
        """Link two; between nodes the first asks."""
        siblings = self.layout.are_siblings(one, other)
        self.fds += 2
        ends = pair((self.fds, self.fds + 1), not siblings)
        self.all_ends += ends
        self.ends[one, other] = ends[0]
        if siblings:
            self.ends[other, one] = ends[1]
        else:
            self.ends[other, ~one] = ends[1]
        for at, end in zip((one, other), ends, strict=True):
            self.worlds[at].wires[end.fd] = end  # type: ignore[assignment]
        lives = [self.workers[at].turn.hand.life for at in (one, other)]
        self.workers[one].link(other, ends[0], lives[1])
        if siblings:
            self.workers[other].link(one, ends[1], lives[0])
        else:
            self.workers[other].serve(one, ends[1])

    def kill(self, at: int) -> None:
        """Have one die between two turns, and another one take its place; links are to be made anew."""
        for wire_ in self.worlds[at].wires.values():
            if isinstance(wire_, End) and not wire_.is_closed:
                wire_.close()
            wire_.is_closed = True
        dead = self.worlds[at]
        self.worlds[at] = World()
        self.worlds[at].now = dead.now
        self.hands.begin(at)
        self.workers[at] = self._worker(at)

    def replace(self, at: int) -> list[Callable[[], None]]:
        """Have another one take the place of one of siblings, as is planned: that goes on for its own clients.

        It opens once all others have heard of it; return what has each of them do so, in any order.
        """
        old, slot = self.workers[at], self.layout.places[at].worker
        self.replaced.append(old)
        self.worlds[at] = World()
        self.worlds[at].now = old.world.now
        self.hands.begin(at)
        new = self.workers[at] = self._worker(at, opens_late=True)
        new.hub.open(lambda: None)
        old.hub.be_replaced()
        hear: list[Callable[[], None]] = []
        for other in (*(self.workers[other] for other in self.layout.siblings(at)), old):
            self.fds += 2
            mine, its = pair((self.fds, self.fds + 1), False)
            self.all_ends += [mine, its]
            if other is not old:
                self.ends[at, other.at], self.ends[other.at, at] = mine, its
            self.worlds[at].wires[mine.fd] = mine  # type: ignore[assignment]
            life = other.turn.hand.life
            if other is old:
                new.hub.siblings.serve(mine.fd, life)
            else:
                new.hub.siblings.connect(self.layout.places[other.at].worker, mine.fd, life)
            hear.append(functools.partial(other.hears_of, its, slot, new.turn.hand.life))
        new.hub.barrier.has_all()
        return hear

    @property
    def now(self) -> float:
        return self.worlds[0].now

    def pass_until(self, at: float) -> None:
        for worker in (*self.workers, *self.replaced):
            worker.world.now = max(worker.world.now, at)

    def settle(self) -> None:
        idle = 0
        for _ in range(3_000):
            is_busy = False
            for worker in (*self.workers, *self.replaced):
                is_busy = worker.one_turn() or is_busy
            idle = 0 if is_busy else idle + 1
            if idle == 2:
                return
        raise AssertionError("it never settles")
