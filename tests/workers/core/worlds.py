"""One worker as it is and one core, each on a network in memory on which a test decides what is read, taken and cut.

What the core leaves to others is done for it by Rare, in the words of workers/doors/junction.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

from skywalker import errors
from skywalker.address import Address
from skywalker.limits import MAX_FRAME, MAX_ID, MAX_UNREADABLE, Limits
from skywalker.members import Member
from skywalker.wire import junction as wire
from skywalker.wire import values
from skywalker.wire.frames import split
from workers.access.admission import Admission
from workers.calls.doubt import LOST_LISTENER, SILENT_LISTENER, unknown
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.core import _core
from workers.doors.junction.dialogue import Dialogue
from workers.doors.junction.methods import METHODS, echo, timed_out_of, unusual
from workers.doors.junction.session import is_beyond_time, may_hear
from workers.engine.loop import LAYOUT, READ, WRITE, Loop, Turn
from workers.engine.machine import Machine
from workers.stats import metrics
from workers.stats.counters import Counters
from workers.stats.log import Log

LIMITS: Final = Limits(
    max_calls=12, output_bytes=20_000, waiting_bytes=40_000, max_plain_reply=30_000, subscriber_buffer=60_000
)
METHOD_OF: Final = (wire.SEND, wire.RECV, wire.TAKE)


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
        self.whats: dict[int, int] = {}

    def recv(self, fd: int, size: int) -> bytes:
        return self._world.wires[fd].recv(size)

    def send(self, fd: int, data: bytes) -> int:
        return self._world.wires[fd].send(data)

    def shut(self, fd: int) -> None:
        self._world.wires[fd].is_shut = True

    def close(self, fd: int) -> None:
        self._world.wires[fd].is_closed = True

    def watch(self, fd: int, mask: int, what: int) -> None:
        self._world.wires[fd].mask = mask
        self.whats[fd] = what

    def forget(self, fd: int) -> None:
        self._world.wires[fd].mask = 0

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return [(self.whats[fd], mask) for fd, mask in self._world.which_are_ready()]


class OldMachine(Machine):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.monotonic = world.clock

    def beneath(self) -> Beneath:
        return Beneath(self._world)


class OldTransport:
    """A Wire as a connection of today's has it."""

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
        self._wire.is_closed = True

    def fileno(self) -> int:
        return self._wire.fd

    def getsockname(self) -> str:
        return "here"

    def setsockopt(self, level: int, option: int, value: int) -> None:
        pass


class Old:
    """Today's worker."""

    def __init__(self) -> None:
        from workers.worker.core import Core

        self.world = World()
        machine = OldMachine(self.world)
        log = Log(machine.monotonic).bind(node="test")
        log.level = None  # type: ignore[attr-defined]  # whatever
        self.memory = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS)))
        self.turn = Turn(machine, Counters(self.memory, self.world.clock, random.random))
        self.loop = Loop(self.turn)
        member = Member("test", "test", Address("127.0.0.1", 1), 1, False, (1, 2, 3))
        node = OwnNode(member, "0", 0, None, machine)
        self.core = Core(
            node, LIMITS, self.loop, self.turn, log, machine, None, Admission(None, LIMITS, self.turn, log)
        )
        self.core.standing.happened(Event.OPENED)

    def connect(self, fd: int, *, knows_errors: bool, acks: bool) -> None:
        session = Dialogue(OldTransport(self.world.wires[fd]), "test", self.core.commons)
        if knows_errors:
            session.learns_errors()
        session.acks = acks
        self.core.connections.opened(session)

    def settle(self) -> None:
        settle(lambda: self.loop.turn(patient=False) or self.turn.has_more())

    @property
    def held(self) -> tuple[int, int]:
        return self.core.ledger.calls_held, self.core.ledger.bytes_held


class Rare:
    """What the core leaves to others, of one world."""

    def __init__(self, new: New) -> None:
        self._new = new
        self._unreadable: dict[int, int] = {}

    def unusual(self, handle: int, body: bytes) -> None:
        core = self._new.core
        (frame,), _ = split(len(body).to_bytes(4, "big") + body, 4)
        try:
            self._do(handle, frame)
        except errors.RequestError as error:
            method, id = echo(frame)
            knows = core.knows_errors(handle)
            if not knows and not may_hear(method, error) and is_beyond_time(method, error):
                self._new.counters.refused(error)
                core.finish(handle)
                return
            words = self._refusal(handle, method, id, error, timed_out_of(frame))
            core.push(handle, words)
            if isinstance(error, errors.BadFrame):
                count = self._unreadable[handle] = self._unreadable.get(handle, 0) + 1
                if count == MAX_UNREADABLE:
                    core.finish(handle)

    def _do(self, handle: int, frame: Any) -> None:
        name = frame[0]
        if name not in METHODS:
            unusual(frame)
            name = values.canonical(name)
        if name == wire.PING:
            if len(frame) == 3 and frame[1] == wire.NIL:
                return
            self._arity(frame, 2)
            self._new.core.push(handle, wire.reply(wire.PING, frame[1], wire.TRUE))
        elif name == wire.CANCEL:
            self._arity(frame, 3)
            raise AssertionError("a good one is none of ours, but by a long name")
        elif name == wire.ACK:
            raise errors.BadArity(f"{values.unpack(frame[0])} has {len(frame)} elements, it takes 2")
        elif name == wire.SUBSCRIBE:
            self._arity(frame, 3)
            self._subscribe(handle, frame[1], values.topic_bytes(frame[2]))
        elif name == wire.UNSUBSCRIBE:
            self._arity(frame, 3)
            ended = self._new.core.unsubscribe(handle, frame[2])
            self._new.core.push(handle, wire.reply(wire.UNSUBSCRIBE, frame[1], wire.TRUE if ended else wire.FALSE))
        elif name in METHOD_OF:
            self._call(handle, METHOD_OF.index(name), frame)
        else:
            raise AssertionError(f"no test asks for {name!r}")

    def _subscribe(self, handle: int, id: bytes, topic: bytes) -> None:
        row, why = self._new.core.subscribe(handle, id, topic)
        most, room = LIMITS.max_calls, LIMITS.waiting_bytes
        if why == 1:
            text = f"this connection has {most} subscriptions, max_calls"
            raise errors.Busy(text, {"limit": "max_calls", "value": most})
        if why == 2:
            raise errors.Busy(f"the calls that wait take {room} bytes", {"limit": "waiting_bytes", "value": room})
        if why:
            raise errors.BadId("this connection has a subscription of that id")
        self._new.core.push(handle, wire.reply(wire.SUBSCRIBE, id, wire.TRUE))
        self._new.core.stand(row)

    def _call(self, handle: int, kind: int, frame: list[bytes]) -> None:
        timed_out = value = group = None
        wanted = ((5, 6), (4, 5), (5,))[kind]
        if kind == 2:
            self._arity(frame, 5)
        elif len(frame) not in wanted:
            self._bad_arity(frame, " or ".join(map(str, wanted)))
        _, id, timeout, *rest = frame
        if kind < 2 and len(frame) == wanted[1]:
            timed_out, *rest = rest
        topic = rest[0]
        if kind == 0:
            value = rest[1]
            if wire.is_reserved(value):
                raise errors.ReservedValue(
                    "a value of extension type 0x45 or 0x54 would be taken for an answer of the node"
                )
        elif kind == 2:
            group = values.topic_bytes(rest[1])
        if len(id) > MAX_ID:
            self._bad_id(id)
        try:
            seconds = values.timeout_seconds(timeout)
        except errors.BadTimeout:
            if self._new.core.knows_errors(handle):
                raise
            seconds = values.nearest_timeout(timeout)
        self._new.core.issue(handle, kind, id, seconds, timed_out, values.topic_bytes(topic), value, group)

    def _arity(self, frame: list[bytes], count: int) -> None:
        if len(frame) != count:
            self._bad_arity(frame, str(count))
        if len(frame[1]) > MAX_ID:
            self._bad_id(frame[1])

    def _bad_arity(self, frame: list[bytes], wanted: str) -> None:
        raise errors.BadArity(f"{values.unpack(frame[0])} has {len(frame)} elements, it takes {wanted}")

    def _bad_id(self, id: bytes) -> None:
        raise errors.BadId(f"id of {len(id)} bytes, limit is {MAX_ID}", {"size": len(id), "limit": MAX_ID})

    def _refusal(self, handle: int, method: bytes, id: bytes, error: errors.RequestError, timed_out: bytes) -> bytes:
        self._new.counters.refused(error)
        is_heard = self._new.core.knows_errors(handle) or may_hear(method, error)
        return wire.error_frame(method, id, error) if is_heard else wire.reply(method, id, timed_out)

    def failed(
        self, handle: int, method: int, id: bytes, timed_out: bytes | None, why: int, size: int, limit: int
    ) -> None:
        error: errors.RequestError
        most, room = LIMITS.max_calls, LIMITS.waiting_bytes
        if why == 8:
            text = f"reply of {size} bytes, limit is {limit}"
            error = errors.TooLarge(text, {"size": size, "limit": limit})
            self._new.core.push(handle, self._refusal(handle, wire.MESSAGE, id, error, wire.TIMED_OUT))
            return
        if why == 1:
            error = errors.Busy(f"{most} calls wait on this connection", {"limit": "max_calls", "value": most})
        elif why == 2:
            error = errors.Busy(f"the calls that wait take {room} bytes", {"limit": "waiting_bytes", "value": room})
        elif why == 3:
            error = errors.Cancelled("the call was cancelled by its client")
        elif why == 4:
            text = f"value of {size} bytes, whoever listens takes {limit} at most"
            error = errors.TooLarge(text, {"size": size, "limit": limit})
        else:
            error = unknown(LOST_LISTENER if why == 9 else SILENT_LISTENER)
        self.fail(handle, method, id, timed_out, error)

    def fail(self, handle: int, method: int, id: bytes, timed_out: bytes | None, error: errors.RequestError) -> None:
        """Push the error with which a call ends."""
        timed_out = wire.TIMED_OUT if timed_out is None else timed_out
        self._new.core.push(handle, self._refusal(handle, METHOD_OF[method], id, error, timed_out))

    def half_is_old(self, handle: int) -> None:
        error = errors.BadFrame(f"the rest of a frame did not come within {LIMITS.half_frame_s:g} s")
        self._new.counters.limited("half_frame_s")
        self._new.counters.refused(error)
        core = self._new.core
        if core.knows_errors(handle) or not core.has_called(handle):
            core.push(handle, wire.error_frame(wire.ERROR, wire.NIL, error))
        core.finish(handle)

    def closed(self, handle: int, why: int, error: int) -> None:
        if why == 2:
            self._new.counters.limited("unread_output_s")
        elif why == 5:
            self._new.counters.limited("subscriber_buffer")

    def sampled(self, topic: bytes) -> int:
        return 3


class New:
    """The core."""

    def __init__(self, seed: int) -> None:
        self.world = World()
        self.memory = memoryview(array("q", bytes(8 * metrics.WORKER_CELLS)))
        self.counters = Counters(self.memory, self.world.clock, random.random)
        key = random.Random(seed).randbytes(16)
        self.core = _core.Moment(Rare(self), LIMITS, self.memory, LAYOUT, key, Beneath(self.world)).core

    def connect(self, fd: int, *, knows_errors: bool, acks: bool) -> None:
        handle = self.core.connect(fd)
        if knows_errors:
            self.core.greeted(handle, acks, MAX_FRAME)

    def settle(self) -> None:
        settle(lambda: self.core.turn(0.0) or self.core.has_more)

    @property
    def held(self) -> tuple[int, int]:
        holds = self.core.holds
        return holds["calls"], holds["bytes"]
