"""Ends of connections: what one side writes is in the kernel's hands, and arrives a little later at the other.

It does whatever becomes of who wrote it. What a dead one has open is closed, and what was not read then is lost.
"""

from __future__ import annotations

import errno
import os
import select
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tests.simulation.kernel import NEVER, Task
from tests.simulation.plan import ROOM

if TYPE_CHECKING:
    from tests.simulation.machine import Net, Poller

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
HUNG_UP: Final = select.EPOLLHUP
BROKEN: Final = select.EPOLLERR | HUNG_UP

Address = tuple[str, int]

PACKET_BYTES: Final = 768
"""What the smallest packet counts for: so 278 fit."""


class File:
    """A real one, on its way to another process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.copies = 0

    def close(self) -> None:
        """Nobody has it any more."""
        os.close(self.fd)


class End:
    """One end of a connection, with what the other has written to it, which can be read once it has arrived.

    What a dead peer leaves is as Linux has it. Of a pair one that was not read is told first, and then what it wrote;
    of TCP what it wrote, and then that; and what is written to it before that is known is taken, and lost.
    """

    def __init__(self, net: Net, *, packets: bool = False, room: int = ROOM) -> None:
        """One that keeps packets whole is within one machine."""
        self.net = net
        self.packets = packets  # it keeps them whole, and is within one machine
        self.host = ""
        self.room = room
        self.peer: End | None = None
        self.is_closed = False
        self.copies = 0  # descriptors of it
        self.name: Address = ("", 0)
        self.pollers: dict[Poller, int] = {}  # each with the descriptor that it has of it
        self.inbox: deque[tuple[float, bytes, list[End | File]]] = deque()
        self.size = 0  # what that counts for
        self.ended_at = NEVER  # when it is here that nothing more comes
        self.reset_at = NEVER  # when it is here that what the other end was sent was not read
        self.broken_by = errno.ECONNRESET  # what is told then
        self.is_told = False  # somebody knows that already
        self.is_lost = False  # nothing that is written to it arrives any more
        self.gives_up_after_s = NEVER  # with what the other end's kernel does not say it has taken
        self.connected_at = 0.0
        self.error = 0  # why it is not connected
        self.taken: list[tuple[float, bytes]] | None = None
        """When the kernel took what for it, of one that is watched; nothing, when there was more than it took."""
        self.said: list[tuple[float, bytes]] | None = None
        """And what of it."""
        self.closed_at = NEVER
        self.holder: Task | None = None
        """Who got a descriptor of it last."""
        self.mute_at = NEVER  # since when nothing passes, of which nobody was told
        self._last_at = 0.0

    @property
    def worker(self) -> int | None:
        """The slot of the worker that has the other end, or had it last; None of whoever is no worker."""
        holder = None if self.peer is None else self.peer.holder
        return getattr(holder.process, "slot", None) if holder is not None else None

    def look(self, at: float) -> None:
        """Have those look who wait for it, at that time."""
        for poller, fd in self.pollers.items():
            poller.changed(fd, at)

    def events(self, now: float) -> int:
        """Return what holds of it."""
        if self.connected_at > now:
            return 0
        if self.error:
            return READ | WRITE | BROKEN
        if self.reset_at <= now:
            return READ | WRITE | (BROKEN if not self.is_told else HUNG_UP)
        mask = 0
        if self.ended_at <= now or (self.inbox and self.inbox[0][0] <= now):
            mask = READ
        peer = self.peer
        assert peer is not None, "it is connected"
        if peer.is_closed and self.packets:
            if self.ended_at <= now:  # all that was written before has come
                mask |= READ | WRITE | HUNG_UP
        elif peer.has_room():
            mask |= WRITE
        return mask

    def has_room(self) -> bool:
        """Whether the other end is told that it may write."""
        return self.size * 4 <= self.room if self.packets else self.size * 3 < self.room * 2

    def next_at(self) -> float:
        """Return when there is something to tell of it next."""
        if self.connected_at > self.net.kernel.time():
            return self.connected_at
        return min(self.inbox[0][0] if self.inbox else NEVER, self.ended_at, self.reset_at)

    def weight(self, data: bytes) -> int:
        """Return what it counts for while it waits to be read."""
        return len(data) + (PACKET_BYTES - 1 if self.packets else 0)

    def put(self, data: bytes, passed: list[End | File], late_s: float = 0.0) -> None:
        """The other end has written this, and its kernel has taken it; it may be so late."""
        net = self.net
        net.kernel.trace_bytes(data)
        if self.taken is not None:
            self.taken.append((net.kernel.time(), data))
        if self.peer is not None and self.peer.said is not None:
            self.peer.said.append((net.kernel.time(), data))
        if self.is_closed and not self.is_lost:
            let_go(passed)
            return
        at = self._arrival(net.luck.random() * late_s if late_s else 0.0)
        if net.kernel.listener is not None:
            net.kernel.listener.wrote(net.kernel.time(), net.writer(), net.reader(self), self, data, at)
        self.inbox.append((at, data, passed))
        self.size += self.weight(data)
        self.look(at)

    def takes_no_more(self) -> None:
        """Its kernel does not take all that the other end has for it."""
        if self.taken is not None:
            self.taken.append((self.net.kernel.time(), b""))

    def end(self, is_reset: bool) -> None:
        """The other end writes nothing more, and perhaps has not read all."""
        if self.is_lost:
            return
        at = self._arrival()
        self.ended_at = min(self.ended_at, at)
        if is_reset:
            self.reset_at = at
        self.look(at)

    def _arrival(self, late_s: float = 0.0) -> float:
        peer = self.peer
        assert peer is not None, "it is connected"
        if self.is_lost:
            peer.break_off(self.net.kernel.time() + peer.gives_up_after_s, errno.ETIMEDOUT)
            return NEVER
        at = self.net.arrival(peer.host, self.host, self.packets) + late_s
        self._last_at = max(self._last_at, at)
        return self._last_at

    def break_off(self, at: float, why: int = errno.ECONNRESET) -> None:
        """The connection breaks at that time."""
        if at < self.reset_at:
            self.reset_at, self.broken_by = at, why
            self.look(at)

    def broken(self) -> OSError:
        """Return the error by which it is told that it is broken."""
        self.is_told = True
        return OSError(self.broken_by, os.strerror(self.broken_by))

    def lose(self) -> None:
        """Nothing passes any more, and nobody is told."""
        for each in (self, self.peer):
            assert each is not None, "it is connected"
            each.is_lost, each.mute_at = True, min(each.mute_at, self.net.kernel.time())

    def reset_both(self) -> None:
        """The connection breaks on both ends."""
        for each in (self, self.peer):
            assert each is not None, "it is connected"
            each.reset()

    def reset(self) -> None:
        """The connection breaks at once, and what has come and was not read is lost."""
        for _, _, passed in self.inbox:
            let_go(passed)
        self.inbox.clear()
        self.size = 0
        self.break_off(self.net.kernel.time())

    def begin_at(self, at: float) -> None:
        """Nothing arrives before that."""
        self._last_at = at

    def close(self) -> None:
        """Nobody has it any more."""
        self.is_closed = True
        self.closed_at = self.net.kernel.time()
        if self.peer is not None and not self.peer.is_closed:
            self.peer.end(bool(self.inbox))
        for _, _, passed in self.inbox:
            let_go(passed)
        self.inbox.clear()

    @property
    def lost_at(self) -> float:
        """When it was over at this end, for whatever reason, and that was known here."""
        return min(self.ended_at, self.reset_at, self.closed_at)

    def refuse(self) -> None:
        """Raise what a write says whose other end is closed, if that is known here."""
        now = self.net.kernel.time()
        if self.reset_at <= now or self.packets:
            if self.reset_at <= now and not self.is_told:
                raise self.broken()
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        if self.reset_at == NEVER:
            self.is_told = self.ended_at <= now  # a write after the end is told by EPIPE alone
            self.reset_at = self._arrival()
            self.look(self.reset_at)


class Queue(End):
    """What a listener is a descriptor of: connections that wait to be accepted."""

    def __init__(self, net: Net, address: Address) -> None:
        End.__init__(self, net)
        self.name = address
        self.waiting: deque[tuple[float, End]] = deque()

    def events(self, now: float) -> int:
        return READ if self.next_at() <= now else 0

    def next_at(self) -> float:
        return self.waiting[0][0] if self.waiting else NEVER

    def close(self) -> None:
        self.net.doors[self.name].remove(self)
        for _, end in self.waiting:
            end.close()
        self.waiting.clear()


def let_go(passed: Iterable[End | File]) -> None:
    """One descriptor of each is closed."""
    for each in passed:
        each.copies -= 1
        if not each.copies:
            each.close()
