"""One worker as it is and one core, each on a network in memory on which a test decides what is read, taken and cut.

What the core leaves to others is done for it by Rare, in the words of workers/doors/junction.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

from workers.doors.junction.dialogue import Dialogue
from workers.doors.junction.rare import JunctionClient
from workers.doors.pubsub import PubSub

from skywalker.access.access import Access
from skywalker.address import Address
from skywalker.errors import Busy, Unauthorized
from skywalker.limits import Limits
from skywalker.members import Member
from workers.access.admission import Admission
from workers.calls.interests import Interests
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.doors.clients import Clients
from workers.doors.commons import Commons
from workers.doors.pubsub_client import PubSubClient
from workers.doors.subscriber import Standing
from workers.engine.loop import READ, WRITE, Loop, Turn
from workers.engine.machine import Machine
from workers.stats import metrics
from workers.stats.close_reasons import Close
from workers.stats.counters import Counters
from workers.stats.log import Log

LIMITS: Final = Limits(
    max_calls=12,
    output_bytes=20_000,
    waiting_bytes=40_000,
    max_plain_reply=30_000,
    subscriber_buffer=60_000,
    idle_probe_s=12.0,
)
RECORD: Final = 700
"""Bytes of a record of Sealed."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What both worlds are made with."""

    limits: Limits = LIMITS
    access: Access | None = None
    opens_late: bool = False


def own_node(machine: Machine) -> OwnNode:
    """Return a node that is alone."""
    return OwnNode(Member("test", "test", Address("127.0.0.1", 1), 1, False, (1, 2, 3)), "0", 0, None, machine)


class Wire:
    """A connection of either world: what its client has written and nobody has read, and what it is written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.coming = bytearray()
        self.ended = False
        self.room = 1_000_000
        self.taken = bytearray()
        self.is_shut = self.is_closed = False
        self.mask = READ

    def recv(self, size: int) -> bytes:
        if self.coming:
            data = bytes(self.coming[:size])
            del self.coming[:size]
            return data
        if self.ended:
            return b""
        raise BlockingIOError(11, "nothing is there")

    def send(self, data: bytes) -> int:
        if not self.room and data:
            raise BlockingIOError(11, "it is full")
        size = min(self.room, len(data))
        self.taken += data[:size]
        self.room -= size
        return size

    def close(self) -> None:
        self.is_closed = True

    def ready(self) -> int:
        mask = 0
        if self.mask & READ and (self.coming or self.ended):
            mask |= READ
        if self.mask & WRITE and self.room:
            mask |= WRITE
        return mask


def settle(turn: Callable[[], object]) -> None:
    """Have turns until nothing is to be done. One whose words were put off is read on in the turn after."""
    idle = 0
    while idle < 2:
        idle = 0 if turn() else idle + 1


class World:
    """A clock, and the wires."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wires: dict[int, Wire] = {}

    def clock(self) -> float:
        return self.now

    def which_are_ready(self) -> Iterator[tuple[int, int]]:
        for fd, wire_ in sorted(self.wires.items()):
            mask = wire_.ready()
            if mask and not wire_.is_closed:
                yield fd, mask


class Beneath:
    """A world as a core knows it."""

    def __init__(self, world: World) -> None:
        self.clock = world.clock
        self._world = world
        self.handles: dict[int, int] = {}

    def recv(self, fd: int, size: int) -> bytes:
        return self._world.wires[fd].recv(size)

    def send(self, fd: int, data: bytes) -> int:
        return self._world.wires[fd].send(data)

    def shut(self, fd: int) -> None:
        self._world.wires[fd].is_shut = True

    def close(self, fd: int) -> None:
        self._world.wires[fd].close()

    def watch(self, fd: int, mask: int, what: int) -> None:
        self._world.wires[fd].mask = mask
        self.handles[fd] = what

    def forget(self, fd: int) -> None:
        self._world.wires[fd].mask = 0

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return [(self.handles[fd], mask) for fd, mask in self._world.which_are_ready()]


class WorldMachine(Machine):
    def __init__(self, world: World, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self.monotonic = world.clock
        self.under = Beneath(world)

    def key(self) -> bytes:
        return random.Random(self._seed).randbytes(16)

    def beneath(self) -> Beneath:
        return self.under


class Plain:
    """A Wire as a connection has it."""

    begun = 0
    ended = False

    def __init__(self, wire_: Wire) -> None:
        self._wire = wire_
        self.recv, self.send = wire_.recv, wire_.send

    def names(self) -> tuple[str, ...]:
        return ()

    def shutdown(self, how: int) -> None:
        self._wire.is_shut = True

    def close(self) -> None:
        self._wire.close()

    def fileno(self) -> int:
        return self._wire.fd

    def getsockname(self) -> str:
        return "here"

    def setsockopt(self, level: int, option: int, value: int) -> None:
        pass

    def detach(self) -> int:
        return self._wire.fd


class Sealed(Plain):
    """One that writes in records, each of which counts once all of it is written, and that tells of its end at once."""

    def __init__(self, wire_: Wire) -> None:
        super().__init__(wire_)
        self._left = 0
        self.recv = self._recv
        self.send = self._send

    def _recv(self, size: int) -> bytes:
        data = self._wire.recv(min(size, 3 * RECORD))
        self.ended = self._wire.ended and not self._wire.coming
        return data

    def _send(self, data: bytes) -> int:
        gone = 0
        while gone < len(data):
            if not self.begun:
                self.begun = self._left = min(RECORD, len(data) - gone)
            at = gone + self.begun - self._left
            with contextlib.suppress(BlockingIOError):
                self._left -= self._wire.send(data[at : gone + self.begun])
            if self._left:
                break
            gone += self.begun
            self.begun = 0
        if not gone:
            raise BlockingIOError
        return gone


class Side:
    """What both worlds have."""

    def __init__(self, settings: Settings, node: OwnNode | None, seed: int, world: World | None = None) -> None:
        from workers.worker.core import Core

        self.world = World() if world is None else world
        self.machine = WorldMachine(self.world, seed)
        self.log = Log(self.machine.monotonic).bind(node="test")
        self.log.level = None  # type: ignore[attr-defined]  # whatever
        self.memory = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS)))
        luck = random.Random(seed).random
        self.counters = Counters(self.memory, self.world.clock, luck)
        self.turn = Turn(self.machine, self.counters, limits=settings.limits)
        self.loop = Loop(self.turn)
        self.node = own_node(self.machine) if node is None else node
        admission = Admission(settings.access, settings.limits, self.turn, self.log)
        self.worker = Core(self.node, settings.limits, self.loop, self.turn, self.log, self.machine, None, admission)
        self.standing = self.worker.standing
        if not settings.opens_late:
            self.standing.happened(Event.OPENED)

    def connect(self, fd: int, host: str = "", *, sealed: bool = False, pubsub: bool = False) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        raise NotImplementedError

    def open(self) -> None:
        raise NotImplementedError

    def drain(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        """All that waits fails, and all connections close."""
        raise NotImplementedError

    @property
    def held(self) -> tuple[int, int]:
        """How many calls, and bytes."""
        raise NotImplementedError


class Old(Side):
    """Today's worker."""

    def __init__(self, settings: Settings = Settings(), node: OwnNode | None = None, seed: int = 0) -> None:
        super().__init__(settings, node, seed)
        self.core = self.worker

    def connect(self, fd: int, host: str = "", *, sealed: bool = False, pubsub: bool = False) -> None:
        wire_ = self.world.wires[fd]
        dialect = PubSub if pubsub else Dialogue
        connection = dialect(Sealed(wire_) if sealed else Plain(wire_), f"{host}:{fd}", self.core.commons)
        self.core.connections.opened(connection)
        try:
            self.core.admission.greet(connection, (), host, None)
            if connection.stranger is not None and pubsub:
                raise Unauthorized("neither its certificate nor its address is known")
        except Busy as error:
            connection.turn_away(error, Close.REFUSED, "too many connections")
        except Unauthorized as error:
            connection.turn_away(error, Close.UNAUTHORIZED, str(error))

    def settle(self) -> None:
        settle(lambda: self.loop.turn(patient=False) or self.turn.has_more())

    def open(self) -> None:
        self.standing.happened(Event.OPENED)
        self.core.connections.hear_all()

    def drain(self) -> None:
        self.core.drain()

    def leave(self) -> None:
        self.core.leave()
        self.standing.happened(Event.DECIDED)
        self.core.stop()

    @property
    def held(self) -> tuple[int, int]:
        return self.core.ledger.calls_held, self.core.ledger.bytes_held


class New(Side):
    """The core."""

    def __init__(
        self, seed: int, settings: Settings = Settings(), node: OwnNode | None = None, world: World | None = None
    ) -> None:
        super().__init__(settings, node, seed, world)
        commons = self.worker.commons
        self.clients = self.make_clients(commons)
        self.core = self.turn.core
        interests = Interests(Standing(self.core), self.worker.router.owner)
        self.clients.commons = dataclasses.replace(commons, interests=interests)
        self.clients.begin(self.core)
        self.core.open(not settings.opens_late)

    def make_clients(self, commons: Commons) -> Clients:
        return Clients(commons, self.adopt)

    def adopt(self, fd: int) -> Any:
        return Plain(self.world.wires[fd])

    def connect(self, fd: int, host: str = "", *, sealed: bool = False, pubsub: bool = False) -> None:
        transport = Sealed(self.world.wires[fd]) if sealed else None
        dialect = PubSubClient if pubsub else JunctionClient
        self.clients.let_in(dialect, fd, f"{host}:{fd}", host, transport=transport)

    def settle(self) -> None:
        settle(lambda: self.loop.turn(patient=False) or self.core.has_more)

    def open(self) -> None:
        self.standing.happened(Event.OPENED)
        self.clients.hear_all()

    def drain(self) -> None:
        self.standing.happened(Event.TERMINATED)
        self.core.drain()

    def leave(self) -> None:
        self.standing.happened(Event.STOPPED)
        self.core.leave()
        for client in self.clients:
            client.leave()
        self.standing.happened(Event.DECIDED)
        self.core.settle()
        for client in self.clients:
            client.fail_all()
        self.core.settle()
        for client in self.clients:
            client.goodbye()
        self.core.settle()

    @property
    def held(self) -> tuple[int, int]:
        return self.core.held()
