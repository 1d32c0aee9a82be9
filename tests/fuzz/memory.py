"""A worker in one process and in memory: it reads and writes no socket, and its clock stands until told to go on.

What it does is the same each time, and as quick as its own code is.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from skywalker.access.access import Access
from skywalker.access.trust import Trust
from skywalker.address import Address
from skywalker.limits import Limits
from skywalker.members import Member
from workers.access.admission import Admission
from workers.calls.own_node import OwnNode
from workers.calls.worker_states import Event
from workers.doors.client import Client
from workers.engine.loop import READ, WRITE, Loop, Turn
from workers.engine.machine import Machine
from workers.stats.close_reasons import Close
from workers.stats.counters import Counters
from workers.worker.hub import Hub

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

    def detach(self) -> int:
        return self._fd

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


class Still(Machine):
    """A machine on which nothing happens by itself, and luck is always the same; a core asks it for all descriptors."""

    def __init__(self, dialled: Callable[[], Any] | None = None) -> None:
        """`dialled` returns our end of a connection to another node."""
        self.monotonic = self.clock = CLOCK
        self.random = lambda: 0.5
        self.token = lambda size: "00" * size
        self.sockets: dict[int, Socket] = {}
        self.watched: dict[int, tuple[int, int]] = {}
        """By descriptor, which events are waited for, and what comes back with them."""
        self._dialled = dialled

    def tcp(self, family: socket.AddressFamily) -> Any:
        assert self._dialled is not None, "there is somebody to dial"
        return self._dialled()

    def adopt(self, fd: int) -> Any:
        return self.sockets[fd]

    def key(self) -> bytes:
        return bytes(16)

    def beneath(self) -> Still:
        return self

    def recv(self, fd: int, size: int) -> bytes:
        return self.sockets[fd].recv(size)

    def send(self, fd: int, data: bytes) -> int:
        return self.sockets[fd].send(data)

    def shut(self, fd: int) -> None:
        self.sockets[fd].shutdown(socket.SHUT_WR)

    def close(self, fd: int) -> None:
        self.sockets[fd].close()

    def watch(self, fd: int, mask: int, what: int) -> None:
        self.watched[fd] = mask, what

    def forget(self, fd: int) -> None:
        del self.watched[fd]

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        ready = []
        for fd, (mask, what) in self.watched.items():
            made = self.sockets[fd]
            events = mask & ((READ if made.said or made.has_ended else 0) | (WRITE if made.room else 0))
            if events:
                ready.append((what, events))
        return ready


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
        self.machine = machine = Still(dialled)
        counters = Counters(None, CLOCK, machine.random)
        self.turn = Turn(machine, counters, limits=limits)
        self.loop = Loop(self.turn)
        notes: Any = Notes()
        admission = Admission(access, limits, self.turn, notes, trust)
        node = OwnNode(member, "0", 0, None, machine)
        self.hub = Hub(node, limits, self.loop, self.turn, notes, machine, admission=admission)
        if opens:
            self.hub.happened(Event.OPENED)
        self._next = 10

    def socket(self, kind: type[Socket] = Socket) -> Any:
        """Return our end of another connection."""
        self._next += 1
        made = self.machine.sockets[self._next] = kind(self._next)
        return made

    def connect(self, dialect: type[Client]) -> Any:
        """Have a client come in; return its socket."""
        made = self.socket()
        self.hub.clients.let_in(dialect, made.fileno(), "fuzz")
        return made

    def go(self, seconds: float = 0.0) -> None:
        """Have a turn, some seconds later: do what is due, read and write all there is."""
        CLOCK.now += seconds
        core, idle = self.hub.core, 0
        for _ in range(MOST_EVENTS):
            # One whose words were put off is read on only once they are done, which shows in the turn after.
            goes_on = self.loop.turn(patient=False) or self.turn.resting or core.has_more
            idle = 0 if goes_on else idle + 1
            if idle == 2:
                return
        raise AssertionError("it goes round in circles")

    def close(self) -> None:
        """Have all go, and what they leave behind be looked at."""
        hub = self.hub
        for client in hub.clients:
            client.close(Close.PEER, "it is over")
        hub.peers.stop()
        for link in hub.siblings.all():
            link.close("it is over")
        self.go()

    def held(self) -> dict[str, int]:
        """Return what is held for somebody, without what is zero."""
        hub = self.hub
        held = {
            **hub.core.holds,
            "clients": len(hub.clients),
            "choked": len(hub.clients.choked()),
            "strangers": len(hub.admission.strangers),
            "guests": len(hub.peers.asking),
            "interests": len(hub.interests),
            "alarms": self.turn.alarms,
            "descriptors": len(self.machine.watched),
            "open sockets": sum(not each.closed for each in self.machine.sockets.values()),
        }
        return {what: size for what, size in held.items() if size}
