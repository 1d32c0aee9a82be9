"""Sockets that are no sockets: what one process writes is in the kernel's hands, and arrives a little later.

It does whatever becomes of the process. What a dead one has open is closed, and what was not read then is lost.
"""

from __future__ import annotations

import array
import errno
import os
import select
import socket
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from tests.simulation.kernel import NEVER, Kernel, Task
from workers.engine.machine import Machine

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
BROKEN: Final = select.EPOLLERR | select.EPOLLHUP

Address = tuple[str, int]

FIRST_FD: Final = 1_000_000
"""Descriptors below are real ones: of files in memory."""

LOCAL_S: Final = 1e-5
NETWORK_S: Final = 2e-4
SLOW_S: Final = 5e-3
"""Seconds that something is on its way, at most: within a machine, between two, and between two once in a hundred."""

ROOM: Final = 212_992
"""Bytes that wait to be read at most."""


class File:
    """A real one, on its way to another process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.copies = 0

    def close(self) -> None:
        """Nobody has it any more."""
        os.close(self.fd)


class End:
    """One end of a connection, with what the other has written to it, which can be read once it has arrived."""

    def __init__(self, net: Net, *, packets: bool = False) -> None:
        self.net = net
        self.packets = packets  # it keeps them whole, and is within one machine
        self.peer: End | None = None
        self.copies = 0  # descriptors of it
        self.name: Address = ("", 0)
        self.pollers: dict[Poller, None] = {}
        self.inbox: deque[tuple[float, bytes, list[End | File]]] = deque()
        self.size = 0  # bytes of that
        self.ended_at = NEVER  # when it is here that nothing more comes
        self.is_reset = False  # what the other end was sent was not read
        self.connected_at = 0.0
        self.error = 0  # why it is not connected
        self.taken: list[tuple[float, bytes]] | None = None
        """When the kernel took what for it, of one that is watched."""
        self._last_at = 0.0

    def look(self, at: float) -> None:
        """Have those look who wait for it, at that time."""
        for poller in self.pollers:
            poller.task.wake(at)

    def events(self, now: float) -> int:
        """Return what holds of it."""
        if self.connected_at > now:
            return 0
        if self.error:
            return READ | WRITE | BROKEN
        mask = 0
        has_ended = self.ended_at <= now
        if has_ended or (self.inbox and self.inbox[0][0] <= now):
            mask = READ
        if self.peer is None:
            mask |= WRITE
            if has_ended and (self.packets or self.is_reset):
                mask |= BROKEN
        elif self.peer.size * 3 < ROOM * 2:
            mask |= WRITE
        return mask

    def next_at(self) -> float:
        """Return when there is something to tell of it next."""
        return max(self.connected_at, min(self.inbox[0][0] if self.inbox else NEVER, self.ended_at))

    def put(self, data: bytes, passed: list[End | File]) -> None:
        """The other end has written this."""
        at = self._last_at = max(self._last_at, self.net.arrival(self.packets))
        self.inbox.append((at, data, passed))
        self.size += len(data)
        if self.taken is not None:
            self.taken.append((self.net.kernel.time(), data))
        self.look(at)

    def end(self) -> None:
        """The other end writes nothing more."""
        if self.ended_at == NEVER:
            self.ended_at = self._last_at = max(self._last_at, self.net.arrival(self.packets))
            self.look(self.ended_at)

    def begin_at(self, at: float) -> None:
        """Nothing arrives before that."""
        self._last_at = at

    def close(self) -> None:
        """Nobody has it any more."""
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.peer = None
            peer.is_reset = bool(self.inbox)
            peer.end()
        for _, _, passed in self.inbox:
            _let_go(passed)
        self.inbox.clear()


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


def _let_go(passed: Iterable[End | File]) -> None:
    for each in passed:
        each.copies -= 1
        if not each.copies:
            each.close()


class Net:
    """All connections of a run, and who has which."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.files: dict[int, Socket] = {}  # by descriptor: no two processes have the same ones
        self.doors: dict[Address, list[Queue]] = {}  # in the order of the slots
        self._last_fd = FIRST_FD
        self._last_port = 40_000

    def arrival(self, local: bool) -> float:
        """Return when what is written now is there."""
        luck = self.kernel.luck.random()
        return self.kernel.time() + luck * (LOCAL_S if local else NETWORK_S if luck < 0.99 else SLOW_S)

    def file(self, end: End, owner: Task | None) -> Socket:
        """Return another descriptor of one end, which that process has."""
        self._last_fd += 1
        end.copies += 1
        made = self.files[self._last_fd] = Socket(self, self._last_fd, end, owner)
        return made

    def listen(self, address: Address, count: int, owner: Task) -> list[Socket]:
        """Return so many listeners of one address, among which the source port chooses."""
        queues = self.doors[address] = [Queue(self, address) for _ in range(count)]
        return [self.file(queue, owner) for queue in queues]

    def connect(self, ours: End, address: Address, port: int) -> None:
        """Connect an end to a listener."""
        self._last_port += 1
        ours.name = ("127.0.0.1", port or self._last_port)
        there_at = self.arrival(local=False)
        ours.connected_at = there_at + self.arrival(local=False) - self.kernel.time()
        queues = self.doors.get(address)
        if queues:
            theirs = End(self)
            theirs.name = address
            ours.peer, theirs.peer = theirs, ours
            ours.begin_at(ours.connected_at)
            theirs.begin_at(there_at)
            queue = queues[(ours.name[1] >> 1) % len(queues)]
            queue.waiting.append((there_at, theirs))
            queue.look(there_at)
        else:
            ours.error = errno.ECONNREFUSED
        ours.look(ours.connected_at)

    def end(self, task: Task) -> None:
        """Close what a process has open that has ended."""
        for each in [each for each in self.files.values() if each.owner is task]:
            each.close()


class Socket:
    """A descriptor, with as much of socket.socket as is asked of it."""

    family = socket.AF_INET

    def __init__(self, net: Net, fd: int, end: End, owner: Task | None) -> None:
        self.end = end
        self.owner = owner
        self._net = net
        self._fd = fd
        self._port = 0

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            del self._net.files[self._fd]
            self._fd = -1
            _let_go([self.end])

    def recv(self, size: int) -> bytes:
        end, now = self.end, self._net.kernel.time()
        inbox = end.inbox
        if not inbox or inbox[0][0] > now:
            if end.ended_at > now:
                raise BlockingIOError
            if end.is_reset:
                end.is_reset = False
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            return b""
        at, found, passed = inbox.popleft()
        end.size -= len(found)
        while not end.packets and inbox and inbox[0][0] <= now and len(found) < size:
            at, data, _ = inbox.popleft()
            end.size -= len(data)
            found += data
        if not end.packets and len(found) > 1 and self._net.kernel.luck.random() < 0.01:
            size = min(size, self._net.kernel.luck.randrange(1, len(found)))
        if len(found) > size and not end.packets:
            inbox.appendleft((at, found[size:], passed))
            end.size += len(found) - size
        if end.peer is not None:
            end.peer.look(now)
        return found[:size]

    def send(self, data: bytes) -> int:
        return self._send(data, [])

    def _send(self, data: bytes, passed: list[End | File]) -> int:
        end, luck = self.end, self._net.kernel.luck
        if end.peer is None:
            if end.is_reset and not end.packets:
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        room = ROOM - end.peer.size
        if room <= 0 or (end.packets and end.peer.size and room < len(data)):
            raise BlockingIOError
        if not end.packets:
            data = data[:room]
            if end.peer.size and len(data) > 1 and luck.random() < 0.01:  # an empty buffer takes all
                data = data[: luck.randrange(1, len(data))]
        end.peer.put(bytes(data), passed)
        if self._net.kernel.running is not None:
            self._net.kernel.running.wrote()
        return len(data)

    def sendmsg(self, buffers: list[bytes], ancillary: list[Any]) -> int:
        files = self._net.files
        fds = [fd for _, _, each in ancillary for fd in each]
        passed = [files[fd].end if fd >= FIRST_FD else File(os.dup(fd)) for fd in fds]
        for each in passed:
            each.copies += 1
        try:
            return self._send(b"".join(buffers), passed)
        except OSError:
            _let_go(passed)
            raise

    def recvmsg(self, size: int, _: int) -> tuple[bytes, list[Any], int, None]:
        inbox, net = self.end.inbox, self._net
        passed = inbox[0][2] if inbox else []
        data = self.recv(size)
        owner = net.kernel.running
        fds = [net.file(each, owner).fileno() if isinstance(each, End) else os.dup(each.fd) for each in passed]
        _let_go(passed)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())] if fds else []
        return data, ancillary, 0, None

    def shutdown(self, _: int) -> None:
        if self.end.peer is not None:
            self.end.peer.end()

    def accept(self) -> tuple[Socket, Address]:
        queue, kernel = self.end, self._net.kernel
        assert isinstance(queue, Queue)
        if queue.next_at() > kernel.time():
            raise BlockingIOError
        _, end = queue.waiting.popleft()
        return self._net.file(end, kernel.running), end.peer.name if end.peer is not None else ("127.0.0.1", 1)

    def bind(self, address: Address) -> None:
        self._port = address[1]

    def connect_ex(self, address: Address) -> int:
        self._net.connect(self.end, address, self._port)
        return errno.EINPROGRESS

    def getsockopt(self, *_: int) -> int:
        return self.end.error

    def setsockopt(self, *_: Any) -> None:
        """No option makes a difference here."""

    def setblocking(self, _: bool) -> None:
        """It never does."""

    def getsockname(self) -> Address:
        return self.end.name

    def getpeername(self) -> Address:
        if self.end.peer is None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return self.end.peer.name


class Poller:
    """An epoll of one process. It tells in any order what is ready."""

    def __init__(self, net: Net, task: Task) -> None:
        self.task = task
        self._net = net
        self._wanted: dict[int, int] = {}
        task.waits_with.append(self)

    def register(self, fd: int, events: int, /) -> None:
        end = self._net.files[fd].end
        end.pollers[self] = None
        self._wanted[fd] = events
        self._look(end)

    def modify(self, fd: int, events: int, /) -> None:
        assert fd in self._wanted, "it was registered"
        self._wanted[fd] = events
        self._look(self._net.files[fd].end)

    def _look(self, end: End) -> None:
        now, next_at = self._net.kernel.time(), end.next_at()
        if next_at < NEVER:
            self.task.wake(max(now, next_at))

    def unregister(self, fd: int, /) -> None:
        del self._wanted[fd]
        self._net.files[fd].end.pollers.pop(self, None)

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        found = self._ready()
        if len(found) > 1:
            self._net.kernel.luck.shuffle(found)
        return found

    def has_ready(self) -> bool:
        return bool(self._ready())

    def _ready(self) -> list[tuple[int, int]]:
        files, now = self._net.files, self._net.kernel.time()
        found = []
        for fd, wanted in self._wanted.items():
            mask = files[fd].end.events(now) & (wanted | BROKEN)
            if mask:
                found.append((fd, mask))
        return found


class Simulated(Machine):
    """The machine as one process of it sees it."""

    def __init__(self, net: Net, task: Task) -> None:
        self.monotonic = task.clock
        self.random = net.kernel.luck.random
        self.token = lambda size: net.kernel.luck.randbytes(size).hex()
        self._net = net
        self._task = task

    def poller(self) -> Poller:
        return Poller(self._net, self._task)

    def adopt(self, fd: int) -> Any:
        return self._net.files[fd]

    def tcp(self, family: socket.AddressFamily = socket.AF_INET) -> Any:
        return self._net.file(End(self._net), self._task)

    def pair(self) -> Any:
        ends = End(self._net, packets=True), End(self._net, packets=True)
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        return self._net.file(ends[0], self._task), self._net.file(ends[1], self._task)
