"""Workers without a process, on a network in memory on which a test decides what is read, taken and cut."""

from __future__ import annotations

import dataclasses
import random
from array import array
from collections.abc import Iterator
from typing import Any, Final

from skywalker.access.access import Access
from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member
from workers.access.admission import Admission
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.doors.client import Client
from workers.doors.junction.client import JunctionClient
from workers.doors.pubsub_client import PubSubClient
from workers.engine.loop import READ, WRITE, Loop, Turn
from workers.engine.machine import Machine
from workers.stats import metrics
from workers.stats.counters import Counters
from workers.stats.hands import Hand
from workers.stats.log import Log
from workers.worker.hub import Hub

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
    """What a worker is made with."""

    limits: Limits = LIMITS
    access: Access | None = None
    opens_late: bool = False


def alone() -> Member:
    """Return a node of one worker."""
    return Member("test", "test", Address("127.0.0.1", 1), 1, False, (1, 2, 3))


class Wire:
    """A connection: what its client has written and nobody has read, and what it is written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.coming = bytearray()
        self.ended = False
        self.room = 1_000_000
        self.taken = bytearray()
        self.read = 0  # bytes in all
        self.written = 0  # bytes of which the worker knows that they are, in all
        self.is_shut = self.is_closed = False
        self.copies = 1  # of its descriptor, which is closed with the last
        self.mask = READ

    def recv(self, size: int) -> bytes:
        if self.coming:
            data = bytes(self.coming[:size])
            del self.coming[:size]
            self.read += len(data)
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

    def shut(self) -> None:
        self.is_shut = True

    def close(self) -> None:
        self.copies -= 1
        self.is_closed = not self.copies

    def ready(self) -> int:
        mask = 0
        if self.mask & READ and (self.coming or self.ended):
            mask |= READ
        if self.mask & WRITE and self.room:
            mask |= WRITE
        return mask


class World:
    """A clock, and the wires."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wires: dict[int, Wire] = {}
        self.read = self.written = 0  # bytes of those that have gone elsewhere

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
        self.world = world
        self.handles: dict[int, int] = {}
        self.has_room = True
        self.reserved = 0

    def recv(self, fd: int, size: int) -> bytes:
        return self.world.wires[fd].recv(size)

    def send(self, fd: int, data: bytes) -> int:
        wire_ = self.world.wires[fd]
        sent = wire_.send(data)
        wire_.written += sent
        return sent

    def recv_passed(self, fd: int, size: int) -> tuple[bytes, int]:
        data, passed = self.world.wires[fd].recv_passed(size)  # type: ignore[attr-defined]  # it is the end of a link
        if passed is None:
            return data, -1
        self.world.wires[passed.fd] = passed
        self.reserved -= 1
        return data, passed.fd

    def send_passing(self, fd: int, data: bytes, passed: int) -> int:
        wire_ = self.world.wires[passed]
        assert not wire_.mask, "it is watched no more"
        sent: int = self.world.wires[fd].send_passing(data, wire_)  # type: ignore[attr-defined]  # that end
        wire_.copies += 1
        return sent

    def reserve(self) -> bool:
        self.reserved += self.has_room
        return self.has_room

    def release(self) -> None:
        self.reserved -= 1

    def shut(self, fd: int) -> None:
        self.world.wires[fd].shut()

    def close(self, fd: int) -> None:
        wire_ = self.world.wires[fd]
        wire_.close()
        if isinstance(wire_, Wire) and wire_.copies:
            del self.world.wires[fd]
            self.world.read += wire_.read
            self.world.written += wire_.written
            wire_.read = wire_.written = 0

    def watch(self, fd: int, mask: int, what: int) -> None:
        self.world.wires[fd].mask = mask
        self.handles[fd] = what

    def forget(self, fd: int) -> None:
        self.world.wires[fd].mask = 0

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return [(self.handles[fd], mask) for fd, mask in self.world.which_are_ready()]


class WorldMachine(Machine):
    """The machine of one worker, with the luck of a seed."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__()
        luck = random.Random(seed)
        self.monotonic = world.clock
        self.random = luck.random
        self.token = lambda size: luck.randbytes(size).hex()
        self._key = luck.randbytes(16)
        self.under = Beneath(world)

    def key(self) -> bytes:
        return self._key

    def beneath(self) -> Beneath:
        return self.under

    def adopt(self, fd: int) -> Any:
        return Plain(self.under.world.wires[fd])


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
        self._wire.shut()

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
        wire_, gone = self._wire, 0
        while gone < len(data):
            if not self.begun:
                self.begun = self._left = min(RECORD, len(data) - gone)
            sent = min(wire_.room, self._left)
            wire_.room -= sent
            self._left -= sent
            if self._left:
                break
            wire_.taken += data[gone : gone + self.begun]  # now the other end can read it
            gone += self.begun
            self.begun = 0
        if not gone:
            raise BlockingIOError
        wire_.written += gone
        return gone


class MemoryWorker:
    """All of a worker but its process. Unless it opens late, it hears clients."""

    def __init__(
        self,
        seed: int = 0,
        settings: Settings = Settings(),
        member: Member | None = None,
        slot: int = 0,
        hand: Hand | None = None,
        world: World | None = None,
    ) -> None:
        self.world = World() if world is None else world
        self.machine = WorldMachine(self.world, seed)
        log = Log(self.machine.monotonic).bind(node="test")
        self.memory = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS)))
        self.counters = Counters(self.memory, self.world.clock, random.Random(seed).random)
        self.turn = Turn(self.machine, self.counters, hand, settings.limits)
        self.loop = Loop(self.turn)
        admission = Admission(settings.access, settings.limits, self.turn, log)
        node = OwnNode(alone() if member is None else member, "0", slot, None, self.machine)
        self.hub = Hub(node, settings.limits, self.loop, self.turn, log, self.machine, None, admission)
        self.core = self.hub.core
        self.let_in = 0
        if not settings.opens_late:
            self.open()

    def open(self) -> None:
        self.hub.happened(Event.OPENED)
        self.hub.clients.hear_all()

    def connect(self, fd: int, host: str = "", *, sealed: bool = False, pubsub: bool = False) -> Client:
        """Let somebody in who is at this wire."""
        self.let_in += 1
        transport = Sealed(self.world.wires[fd]) if sealed else None
        dialect = PubSubClient if pubsub else JunctionClient
        return self.hub.clients.let_in(dialect, fd, f"{host}:{fd}", host, transport=transport)

    def one_turn(self) -> bool:
        """Do what there is to do now; return whether there was anything."""
        return bool(self.loop.turn(patient=False) or self.turn.resting or self.core.has_more)

    def settle(self) -> None:
        """Have turns until nothing is to be done. One whose words were put off is read on in the turn after."""
        idle = 0
        while idle < 2:
            idle = 0 if self.one_turn() else idle + 1

    def leave(self) -> None:
        """All that waits fails, and all connections close."""
        self.hub.leave()
        self.hub.happened(Event.DECIDED)
        self.hub.stop()
