"""Several workers as they are, and as many cores, each linked among themselves on a network in memory.

What a link carries differs between siblings, flat here and packed there, so that a test says of it only whether it
takes anything, and whether it hands on what it took. Between nodes it is the same bytes, and there may be room for any
number.
"""

from __future__ import annotations

import math
import random
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from workers.doors.junction.dialogue import Dialogue

from skywalker.address import Address
from skywalker.members import Member, Place
from skywalker.ring import Ring
from tests.workers.core.worlds import Old, Plain, World, WorldMachine
from workers.access.admission import Admission
from workers.calls.call import ClientCall
from workers.calls.own_node import OwnNode
from workers.calls.owner import Owner
from workers.calls.worker_states import Event
from workers.engine.loop import READ, WRITE, Loop, Turn
from workers.mesh.link import Link
from workers.stats import metrics
from workers.stats.counters import Counters
from workers.stats.hands import Hands
from workers.stats.log import Log

HUP: Final = 16
NEVER_SENT: Final = b"\xff"


def due_at(at: float) -> float:
    """Return when what is due at that time is so, to 10 ms: as deadlines.py has it, and a bit later."""
    return (int(at * 100) + 1) / 100 + 1e-6


class End:
    """One end of a link, as a Wire is of a connection."""

    def __init__(self, fd: int, is_stream: bool) -> None:
        self.fd = fd
        self.is_stream = is_stream
        self.coming: deque[bytes] = deque()
        self.other: End
        self.is_delayed = False  # nothing of what comes is here yet
        self.ended = False  # nothing comes behind that
        self.room = 10_000_000  # bytes that it takes, or of packets whether it takes any
        self.is_closed = False
        self.mask = READ

    def recv(self, size: int) -> bytes:
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
        if self.other.is_closed or self.ended:
            raise BrokenPipeError(32, "the other end is dead")
        if not self.room:
            raise BlockingIOError(11, "it is full")
        size = min(self.room, len(data)) if self.is_stream else len(data)
        if self.is_stream:
            self.room -= size
        if size:
            self.other.coming.append(data[:size])
        return size

    def close(self) -> None:
        self.is_closed = True
        self.other.ended = True

    def shutdown(self, how: int) -> None:
        self.other.ended = True

    def fileno(self) -> int:
        return self.fd

    def names(self) -> tuple[str, ...]:
        return ()

    def ready(self) -> int:
        is_broken = self.ended and not self.is_delayed
        mask = 0
        if self.mask & READ and (is_broken or (self.coming and not self.is_delayed)):
            mask |= READ
        if self.mask & WRITE and (self.room or self.ended):
            mask |= WRITE
        return mask | (HUP if is_broken else 0)


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

    def are_siblings(self, one: int, other: int) -> bool:
        return self.nodes[one] == self.nodes[other]

    def siblings(self, at: int) -> list[int]:
        return [other for other in range(len(self.nodes)) if other != at and self.are_siblings(at, other)]

    def links(self) -> list[tuple[int, int]]:
        """Return who is linked with whom; between nodes the first asks, and the second answers."""
        count = range(len(self.nodes))
        return [(one, other) for one in count for other in count
                if (one < other if self.are_siblings(one, other) else one != other)]  # fmt: skip


# Today's.


class OrderedDialogue(Dialogue):
    """One whose calls are gone through in the order of the core, which means nothing: here, then elsewhere, by age."""

    def waiting(self) -> list[ClientCall]:
        return sorted(Dialogue.waiting(self), key=lambda call: (
            call.carrier is not None, call.since, call.number or NEVER_SENT if call.carrier else b"", call.arrival
        ))  # fmt: skip


class OldWorker(Old):
    """One of several, of which `at` is which."""

    def __init__(self, world: World, layout: Layout, at: int, hands: Hands, limits: Any) -> None:
        from workers.worker.core import Core

        self.world, self.layout, self.at = world, layout, at
        machine = WorldMachine(self.world, at)
        log = Log(machine.monotonic).bind(node="test")
        log.level = None  # type: ignore[attr-defined]  # whatever
        self.memory = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS)))
        counters = Counters(self.memory, self.world.clock, random.random)
        self.hand = hands.hand(at)
        self.turn = Turn(machine, counters, self.hand)
        self.loop = Loop(self.turn)
        place, workers = layout.places[at], layout.nodes.count(layout.nodes[at])
        member = Member(place.node, place.node, Address("127.0.0.1", 1), workers, False, tuple(range(1, 1 + workers)))
        node = OwnNode(member, "0", place.worker, None, machine)
        self.core = Core(
            node, limits, self.loop, self.turn, log, machine, None, Admission(None, limits, self.turn, log)
        )
        self.core.standing.happened(Event.OPENED)
        self.far = {
            other: Owner(place)
            for other, place in enumerate(layout.places)
            if other != at and not layout.are_siblings(at, other)
        }
        self.links: dict[int, Link] = {}  # to those asked
        self.follow()

    def follow(self) -> None:
        layout = self.layout
        owners = {owner.place: owner for owner in self.core.siblings.owners}
        owners |= {owner.place: owner for owner in self.far.values()}
        ring = Ring.of_tokens({token: layout.places[at] for token, at in layout.tokens.items()})
        self.core.router.follow(ring, owners)

    def link(self, other: int, end: End, life: bytes) -> None:
        """Have a link to a sibling, or ask a worker of another node."""
        if self.layout.are_siblings(self.at, other):
            self.core.siblings.connect(self.layout.places[other].worker, end, life)  # type: ignore[arg-type]
            return
        owner = self.far[other]
        linking = self.core.siblings._linking

        def ended(link: Link, reason: str) -> None:
            owner.lost(link.outbound)

        link = linking.abroad(end, owner.place, ended)  # type: ignore[arg-type]
        link.open()
        owner.met(link.outbound)

    def serve(self, end: End) -> None:
        """Be asked by a worker of another node."""
        linking = self.core.siblings._linking
        linking.abroad(end, None, lambda link, reason: None, unwritten=b"").open()  # type: ignore[arg-type]

    def connect(self, fd: int, host: str = "", *, knows_errors: bool = False, acks: bool = False, **_: Any) -> None:
        session = OrderedDialogue(Plain(self.world.wires[fd]), f"{host}:{fd}", self.core.commons)
        if knows_errors:
            session.learns_errors()
        session.acks = acks
        self.core.connections.opened(session)

    def one_turn(self) -> bool:
        return bool(self.loop.turn(patient=False) or self.turn.has_more())


class Cluster:
    """Those of one kind, with one clock."""

    def __init__(self, layout: Layout, make: Callable[[World, int, Hands], Any]) -> None:
        count = len(layout.nodes)
        self.layout = layout
        self.hands = Hands(count)
        self.worlds = [World() for _ in range(count)]
        for at in range(count):
            self.hands.begin(at)
        self._make = make
        self.workers = [make(self.worlds[at], at, self.hands) for at in range(count)]
        self.ends: dict[tuple[int, int], End] = {}  # of a link, by who has this end and who has the other
        self.all_ends: list[End] = []  # also those of links that others are in place of
        self.fds = 1_000
        for one, other in layout.links():
            self.link(one, other)

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
        lives = [self.workers[at].hand.life for at in (one, other)]
        self.workers[one].link(other, ends[0], lives[1])
        if siblings:
            self.workers[other].link(one, ends[1], lives[0])
        else:
            self.workers[other].serve(ends[1])

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
        self.workers[at] = self._make(self.worlds[at], at, self.hands)

    @property
    def now(self) -> float:
        return self.worlds[0].now

    def pass_until(self, at: float) -> None:
        for world in self.worlds:
            world.now = max(world.now, at)

    def next_alarm(self) -> float:
        """Return when the next of all that cores are waiting for is due."""
        ats = [at for worker in self.workers for at, _ in worker.alarms]
        return min((due_at(at) for at in ats), default=math.inf)

    def settle(self) -> None:
        idle = 0
        for _ in range(3_000):
            is_busy = False
            for worker in self.workers:
                is_busy = worker.one_turn() or is_busy
            idle = 0 if is_busy else idle + 1
            if idle == 2:
                return
        raise AssertionError("it never settles")


def old_cluster(layout: Layout, limits: Any) -> Cluster:
    return Cluster(layout, lambda world, at, hands: OldWorker(world, layout, at, hands, limits))
