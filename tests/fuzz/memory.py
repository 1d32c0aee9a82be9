"""A worker in one process and in memory: it reads and writes no socket, and its clock stands until told to go on.

What it does is the same each time, and as quick as its own code is.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from workers.doors.connection import Connection
from workers.worker.core import Core

from skywalker.access.access import Access
from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member
from tests.workers.turns import turn_at
from workers.access.admission import Admission
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.doors.commons import Commons
from workers.engine.loop import READ, WRITE
from workers.engine.machine import Machine
from workers.stats.close_reasons import Close

NEVER_S: Final = 1e9
"""Seconds that are never over."""

MOST_EVENTS: Final = 10_000
"""Events of one turn: whoever makes more of them goes round in circles."""


class Clock:
    """Seconds, as time.monotonic() has them."""

    BEGIN: Final = 1000.0
    now = BEGIN

    def begin(self) -> None:
        """Begin anew, so that each input finds the same time."""
        self.now = self.BEGIN

    def __call__(self) -> float:
        return self.now


CLOCK: Final = Clock()


class Bug(AssertionError):
    """The worker itself says that it has made a mistake."""


class Notes:
    """A log of which only mistakes matter."""

    def bind(self, **_: object) -> Notes:
        return self

    def info(self, event: str, **fields: object) -> None:
        """Something that a peer may cause."""

    warning = info

    def error(self, event: str, **fields: object) -> None:
        raise Bug(f"{event}: {fields}")


class Socket:
    """Our end of a connection. What the other end says is put into `said`; `heard` is what we have written to it."""

    begun = 0
    ended = False

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.said: deque[bytes] = deque()  # each piece is read by itself
        self.heard = bytearray()
        self.room: float = NEVER_S  # bytes that we may write before the other end reads
        self.was_full = False  # at some time: nothing more of the other end was read before it had read
        self.has_ended = False  # the other end
        self.closed = self.shut = False  # ours

    def fileno(self) -> int:
        return self._fd

    def say(self, pieces: Iterable[bytes]) -> None:
        """Have these arrive, unless nobody reads them."""
        if not self.closed and not self.has_ended:
            self.said += (piece for piece in pieces if piece)

    def end(self) -> None:
        """The other end says no more."""
        self.has_ended = True

    @property
    def readable(self) -> bool:
        """Whether a read does not block."""
        return bool(self.said) or self.has_ended

    def recv(self, size: int) -> bytes:
        if not self.said:
            if self.has_ended:
                return b""
            raise BlockingIOError
        piece = self.said.popleft()
        if len(piece) > size:
            self.said.appendleft(piece[size:])
        return piece[:size]

    def send(self, data: bytes) -> int:
        if self.has_ended and not self.room:
            raise BrokenPipeError(32, "Broken pipe")
        sent = int(min(len(data), self.room))
        self.was_full |= sent < len(data)
        if not sent and data:
            raise BlockingIOError
        self.heard += data[:sent]
        self.room -= sent
        return sent

    def close(self) -> None:
        self.closed = True

    def shutdown(self, _: int) -> None:
        self.shut = True
        self.has_ended = True  # whoever reads the end of it ends as well

    def connect_ex(self, _: object) -> int:
        return 0

    def getsockopt(self, *_: int) -> int:
        return 0

    def setsockopt(self, *_: Any) -> None:
        """It has no options."""

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self._fd

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 1


class Loop:
    """What is to be told of which events."""

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = {}
        self.wanted: dict[int, int] = {}

    def add(self, fd: int, handler: Any, events: int = READ) -> None:
        assert fd not in self.handlers
        self.handlers[fd], self.wanted[fd] = handler, events

    def change(self, fd: int, events: int) -> None:
        assert fd in self.handlers
        self.wanted[fd] = events

    def remove(self, fd: int) -> None:
        del self.handlers[fd], self.wanted[fd]


class Still(Machine):
    """A machine on which nothing happens by itself, and luck is always the same."""

    def __init__(self, dialled: Callable[[], Any] | None = None) -> None:
        """`dialled` returns our end of a connection to another node."""
        self.monotonic = CLOCK
        self.random = lambda: 0.5
        self.token = lambda size: "00" * size
        self._dialled = dialled

    def tcp(self, family: socket.AddressFamily) -> Any:
        assert self._dialled is not None, "there is somebody to dial"
        return self._dialled()


ALONE: Final = Member("id", "name", Address("127.0.0.1", 3443), 1, False, (-7, 0, 99))


class Worker:
    """The parts of a worker. It owns all topics until it is told of others."""

    def __init__(
        self,
        limits: Limits,
        member: Member = ALONE,
        access: Access | None = None,
        trust: Trust | None = None,
        *,
        opens: bool = True,
        dialled: Callable[[], Any] | None = None,
    ) -> None:
        machine = Still(dialled)
        self.loop = Loop()
        self.sockets: dict[int, Socket] = {}
        self.turn = turn_at(CLOCK.now, CLOCK, machine.random)
        notes: Any = Notes()
        loop: Any = self.loop
        admission = Admission(access, limits, self.turn, notes, trust)
        node = OwnNode(member, "0", 0, None, machine)
        self.core = Core(node, limits, loop, self.turn, notes, machine, admission=admission)
        if opens:
            self.core.standing.happened(Event.OPENED)
        self._next = 10

    def socket(self, kind: type[Socket] = Socket) -> Any:
        """Return our end of another connection."""
        self._next += 1
        made = self.sockets[self._next] = kind(self._next)
        return made

    def connect(self, dialect: Callable[[Any, str, Commons], Connection]) -> Any:
        """Have a client come in; return its socket."""
        made = self.socket()
        connection = dialect(made, "fuzz", self.core.commons)
        self.core.connections.opened(connection)
        self.core.admission.greet(connection, (), "", None)
        return made

    def go(self, seconds: float = 0.0) -> None:
        """Have a turn, some seconds later: do what is due, read and write all there is."""
        CLOCK.now += seconds
        self.turn.begin(CLOCK.now)
        self.turn.end()
        for _ in range(MOST_EVENTS):
            if not self.is_busy():
                return
        raise AssertionError("it goes round in circles")

    def is_busy(self) -> bool:
        """Read and write what there is now; return whether there was something."""
        turn = self.turn
        busy = turn.has_more()
        turn.begin(CLOCK.now)
        turn.go_on()
        for fd in [*self.loop.handlers]:
            if events := self._events(fd):
                busy = True
                self.loop.handlers[fd].ready(events)
                if turn.later:
                    turn.attend()
        turn.end()
        return busy

    def _events(self, fd: int) -> int:
        made, wanted = self.sockets[fd], self.loop.wanted.get(fd, 0)
        if fd not in self.loop.handlers:
            return 0
        return (wanted & READ if made.readable else 0) | (wanted & WRITE if made.room > 0 else 0)

    def close(self) -> None:
        """Have all go, and what they leave behind be looked at."""
        core = self.core
        for connection in [*core.connections]:
            connection.close(Close.PEER, "it is over")
        core.peers.stop()
        for link in core.siblings.all():
            link.close("it is over")
        self.go()

    def held(self) -> dict[str, int]:
        """Return what is held for somebody, without what is zero."""
        core = self.core
        held = {
            "calls": core.ledger.calls_held,
            "bytes": core.ledger.bytes_held,
            "connections": len(core.connections),
            "choked": len(core.connections.choked),
            "strangers": len(core.admission.strangers),
            "guests": len(core.peers.inbound),
            "topics": len(core.junction),
            "interests": len(core.interests),
            "alarms": self.turn.alarms,
            "descriptors": len(self.loop.handlers),
            "open sockets": sum(not each.closed for each in self.sockets.values()),
        }
        return {what: size for what, size in held.items() if size}
