"""Sockets and descriptors that are none, and who has which; each process sees them as its machine."""

from __future__ import annotations

import array
import errno
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, Final

from tests.simulation.ends import BROKEN, Address, End, File, Queue, let_go
from tests.simulation.kernel import NEVER, Kernel, Process, Task
from tests.simulation.plan import FAIR, Conditions
from workers.engine.machine import Machine

_NOT_NOW: Final = (errno.EAGAIN, os.strerror(errno.EAGAIN))

FIRST_PID: Final = 10_000_000
"""More than Linux gives to a process, so that a signal to one of ours never reaches a real one by mistake."""

FIRST_FD: Final = 1_000_000
"""Descriptors below are real ones: of files in memory."""

NETWORK_S: Final = 2e-4
SLOW_S: Final = 5e-3
"""Seconds that something is on its way between machines, at most; the latter once in a hundred."""


class Net:
    """All connections of a run, and who has which."""

    def __init__(self, kernel: Kernel, conditions: Conditions = FAIR) -> None:
        self.kernel = kernel
        self.conditions = conditions
        self.files: dict[int, Socket] = {}  # by descriptor: no two processes have the same ones
        self.doors: dict[Address, list[Queue]] = {}  # in the order of the slots
        self.listened: dict[Address, str] = {}  # who listens there, or did last
        self.parted: dict[tuple[str, str], float] = {}  # until when nothing passes from one host to another
        self.names: dict[str, list[str]] = {}
        """The addresses of hosts that have a name."""
        self._off: dict[str, list[End]] = {}  # machines without power, and who waits for an answer of them
        self.processes: dict[int, Any] = {}
        """Those that are not reaped, by their number."""
        self._last_pid = FIRST_PID
        self.ended: list[Callable[[Task], None]] = []
        """Who is told of a process that has ended, and of what it has open elsewhere."""
        self._last_fd = FIRST_FD
        self._last_port = 40_000

    @property
    def luck(self) -> Random:
        """That of whoever runs."""
        return (self.kernel.running or self.kernel).luck

    def arrival(self, here: str, there: str, local: bool = False) -> float:
        """Return when what is written now is there: at once within one machine, else when no partition is between."""
        now = self.kernel.time()
        if local:
            return now
        luck = self.luck.random()
        at = now + luck * (NETWORK_S if luck < 0.99 else SLOW_S)
        return max(at, self.parted.get((here, there), 0.0) + luck * NETWORK_S)

    def task(self, name: str, host: str, process: Process) -> Task:
        """Return what has a process run, on a host."""
        return Task(self.kernel, name, host, process)

    def machine(self, task: Task) -> Simulated:
        """Return what a process asks for all that is the machine's."""
        return Simulated(self, task)

    def node_at(self, address: Address) -> str:
        """Return which node listens there, or did."""
        return self.listened[address].partition(".")[0]  # in whichever of its lives

    def file(self, end: End, owner: Task | None) -> Socket:
        """Return another descriptor of one end, which that process has."""
        self._last_fd += 1
        end.copies += 1
        end.holder = owner
        made = self.files[self._last_fd] = Socket(self, self._last_fd, end, owner)
        return made

    def taken_over(self, passed: End | File) -> int:
        """Return the descriptor that whoever runs has of what was passed on to it."""
        found = self.file(passed, self.kernel.running).fileno() if isinstance(passed, End) else os.dup(passed.fd)
        let_go([passed])
        return found

    def may_open(self, task: Task | None) -> None:
        """Raise OSError if there are no descriptors left for a process."""
        if task is not None and task.starves_until > self.kernel.time():
            raise OSError(errno.EMFILE, "Too many open files")

    def add_process(self, process: Any) -> int:
        """Return the number of a new process."""
        self._last_pid += 1
        self.processes[self._last_pid] = process
        return self._last_pid

    def writer(self) -> str:
        """Return the name of whoever runs."""
        return self.kernel.running.name if self.kernel.running is not None else "somebody"

    def reader(self, end: End) -> str:
        """Return the name of whoever has an end."""
        owners = [each.owner.name for each in self.files.values() if each.end is end and each.owner is not None]
        return owners[0] if owners else f"whoever accepts at {end.name[0]}:{end.name[1]}"

    def listen(self, address: Address, count: int, owner: Task) -> list[Socket]:
        """Return so many listeners of one address, the source port chooses. Raises OSError if it is taken."""
        if self.doors.get(address):
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.listened[address] = owner.name
        queues = self.doors[address] = [Queue(self, address) for _ in range(count)]
        return [self.file(queue, owner) for queue in queues]

    def free_port(self) -> int:
        """Return a port that nobody has."""
        self._last_port += 1
        return self._last_port

    def resolve(self, host: str) -> list[str]:
        """Return the addresses of a host. Raises socket.gaierror if it has none."""
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.names[host]

    def connect(self, ours: End, address: Address, port: int) -> None:
        """Connect an end to a listener."""
        ours.name = (ours.host, port or self.free_port())
        there_at = self.arrival(ours.host, address[0])
        ours.connected_at = there_at + self.arrival(address[0], ours.host) - self.kernel.time()
        queues = self.doors.get(address)
        if address[0] in self._off:
            ours.connected_at = NEVER
            self._off[address[0]].append(ours)
        elif queues:
            theirs = End(self, room=self.conditions.room)
            theirs.name, theirs.host = address, address[0]
            ours.peer, theirs.peer = theirs, ours
            ours.begin_at(ours.connected_at)
            theirs.begin_at(there_at)
            queue = queues[(ours.name[1] >> 1) % len(queues)]
            queue.waiting.append((there_at, theirs))
            queue.look(there_at)
        else:
            ours.error = errno.ECONNREFUSED
        ours.look(ours.connected_at)

    def part(self, here: str, there: str, seconds: float) -> None:
        """Have nothing pass from one host to another for so long; it comes then."""
        self.parted[here, there] = max(self.parted.get((here, there), 0.0), self.kernel.now + seconds)

    def between(self, here: str, there: str) -> list[End]:
        """Return the ends on one host of connections to another."""
        ends = {each.end: None for each in self.files.values() if each.end.host == here and each.end.peer is not None}
        return [end for end in ends if end.peer is not None and end.peer.host == there and not end.peer.is_closed]

    def turn_off(self, host: str) -> None:
        """Have a machine vanish: who is connected to it, or connects, hears nothing."""
        ends = {each.end: None for each in self.files.values() if each.end.host == host}
        ends |= {
            end: None for (at, _), queues in self.doors.items() if at == host for q in queues for _, end in q.waiting
        }
        lost = [end for end in ends if not end.packets and end.peer is not None]
        for end in lost:
            end.lose()
        self._off[host] = [end.peer for end in lost if end.peer is not None]

    def is_off(self, host: str) -> bool:
        """Whether a machine has no power."""
        return host in self._off

    def turn_on(self, host: str) -> None:
        """Have it be there again: it knows of no connection that it had."""
        for end in self._off.pop(host):
            if end.peer is None:
                end.error, end.connected_at = errno.ECONNREFUSED, self.arrival(host, end.host)
                end.look(end.connected_at)
            else:
                end.break_off(self.arrival(host, end.host))

    def end(self, task: Task) -> None:
        """Close what a process has open that has ended."""
        for each in [each for each in self.files.values() if each.owner is task]:
            each.close()
        for told in self.ended:
            told(task)


class Socket:
    """A descriptor, with as much of socket.socket as is asked of it."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

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

    def detach(self) -> int:
        """Have its descriptor be somebody else's, who finds this by it."""
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            self.forget()
            let_go([self.end])

    def forget(self) -> None:
        """Have nobody have it any more, of which the other end hears nothing."""
        del self._net.files[self._fd]
        self._fd = -1

    def recv(self, size: int) -> bytes:
        data, passed = self.recv_passed(size)
        let_go(passed)  # descriptors that nobody asks for are closed
        return data

    def recv_passed(self, size: int) -> tuple[bytes, list[End | File]]:
        """Return what has come, and the descriptors that were passed with it, for whoever has them now."""
        end, now = self.end, self._net.kernel.time()
        inbox = end.inbox
        has_come = bool(inbox) and inbox[0][0] <= now
        if end.reset_at <= now and not end.is_told and (end.packets or not has_come):
            raise end.broken()
        if not has_come:
            if min(end.ended_at, end.reset_at) > now:
                raise BlockingIOError(*_NOT_NOW)
            return b"", []
        if self._refuses():
            raise BlockingIOError(*_NOT_NOW)
        at, found, passed = inbox.popleft()
        was_full = not end.has_room()
        end.size -= end.weight(found)
        while not end.packets and inbox and inbox[0][0] <= now and len(found) < size:
            at, data, _ = inbox.popleft()
            end.size -= len(data)
            found += data
        if not end.packets and len(found) > 1 and self._net.luck.random() < self._net.conditions.pieces:
            size = min(size, self._net.luck.randrange(1, len(found)))
        if len(found) > size and not end.packets:
            inbox.appendleft((at, found[size:], []))
            end.size += len(found) - size
        if was_full and end.peer is not None:
            end.peer.look(now)
        return found[:size], passed

    def _refuses(self) -> bool:
        """Return whether it does so in spite of what was told, as TCP may: packets were lost, or memory is short."""
        refusals = self._net.conditions.refusals
        return bool(refusals) and not self.end.packets and self._net.luck.random() < refusals

    def send(self, data: bytes, passed: Sequence[int] = (), late_s: float = 0.0) -> int:
        """Write, and pass on these descriptors with it, which stay open here; it is up to `late_s` until that is there.

        What siblings say to each other is there at once, and so is what they pass: of a dead one all can be read.
        """
        files = self._net.files
        ends = [files[fd].end if fd >= FIRST_FD else File(os.dup(fd)) for fd in passed]
        for each in ends:
            each.copies += 1
        try:
            return self._send(data, ends, late_s)
        except OSError:
            let_go(ends)
            raise

    def _send(self, data: bytes, passed: list[End | File], late_s: float) -> int:
        peer, luck, running = self.end.peer, self._net.luck, self._net.kernel.running
        assert peer is not None, "it is connected"
        if self._fd < 0:
            raise OSError(errno.EBADF, "Bad file descriptor")
        if running is not None:
            running.may_write()
        if not data and not peer.packets:
            return 0
        if (peer.is_closed and not peer.is_lost) or self.end.reset_at <= self._net.kernel.time():
            self.end.refuse()
        room = peer.room - peer.size
        if peer.size and (self._refuses() or room <= 0):  # or it takes all
            peer.takes_no_more()
            raise BlockingIOError(*_NOT_NOW)
        size = len(data)
        if not peer.packets:
            data = data[:room]
            if peer.size and len(data) > 1 and luck.random() < self._net.conditions.pieces:
                data = data[: luck.randrange(1, len(data))]
        peer.put(bytes(data), passed, late_s)
        if len(data) < size:
            peer.takes_no_more()
        if running is not None:
            running.wrote()
        return len(data)

    def sendmsg(self, buffers: list[bytes], ancillary: list[Any]) -> int:
        fds = [fd for _, _, each in ancillary for fd in each]
        return self.send(b"".join(buffers), fds, self._net.conditions.late_s if fds else 0.0)

    def recvmsg(self, size: int, _: int) -> tuple[bytes, list[Any], int, None]:
        data, passed = self.recv_passed(size)
        fds = [self._net.taken_over(each) for each in passed]
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())] if fds else []
        return data, ancillary, 0, None

    def shutdown(self, _: int) -> None:
        if self.end.peer is not None:
            self.end.peer.end(is_reset=False)

    def accept(self) -> tuple[Socket, Address]:
        queue, kernel = self.end, self._net.kernel
        assert isinstance(queue, Queue)
        if queue.next_at() > kernel.time():
            raise BlockingIOError(*_NOT_NOW)
        self._net.may_open(kernel.running)
        _, end = queue.waiting.popleft()
        assert end.peer is not None, "it came from somewhere"
        return self._net.file(end, kernel.running), end.peer.name

    def bind(self, address: Address) -> None:
        self._port = address[1]

    def connect_ex(self, address: Address) -> int:
        self._net.connect(self.end, address, self._port)
        return errno.EINPROGRESS

    def connect(self, address: Address) -> None:
        raise BlockingIOError(self.connect_ex(address), "Operation now in progress")

    def listen(self, _: int) -> None:
        """It does from the beginning."""

    def getsockopt(self, *_: int) -> int:
        """Return why it is broken or not connected, if nobody was told so yet."""
        end = self.end
        if end.reset_at <= self._net.kernel.time() and not end.is_told:
            return end.broken().errno or 0
        return end.error

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        """Few options make a difference here."""
        if (level, option) == (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT):
            self.end.gives_up_after_s = value / 1000

    def setblocking(self, _: bool) -> None:
        """It never does."""

    def gettimeout(self) -> float:
        return 0.0

    def getsockname(self) -> Address:
        return self.end.name

    def getpeername(self) -> Address:
        peer = self.end.peer
        if peer is None or self.end.reset_at <= self._net.kernel.time():
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return peer.name


class Poller:
    """An epoll of one process. It tells in any order what is ready."""

    def __init__(self, net: Net, task: Task) -> None:
        self.task = task
        self._net = net
        self._wanted: dict[int, int] = {}
        self._changed: dict[int, None] = {}  # those of which there may be something to tell, now or later
        task.waits_with.append(self)

    def register(self, fd: int, events: int, /) -> None:
        end = self._net.files[fd].end
        assert self not in end.pollers, "one descriptor of it is enough"
        end.pollers[self] = fd
        self.modify(fd, events)

    def modify(self, fd: int, events: int, /) -> None:
        self._wanted[fd] = events
        self.changed(fd, self._net.files[fd].end.next_at())

    def unregister(self, fd: int, /) -> None:
        del self._wanted[fd]
        self._changed.pop(fd, None)
        self._net.files[fd].end.pollers.pop(self, None)

    def changed(self, fd: int, at: float) -> None:
        """There may be something to tell of it from that time on."""
        self._changed[fd] = None
        if at < NEVER:
            self.task.look(at)

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        files, wanted, now = self._net.files, self._wanted, self._net.kernel.time()
        found = []
        for fd in self._changed:
            mask = files[fd].end.events(now) & (wanted[fd] | BROKEN)
            if mask:
                found.append((fd, mask))
        if len(found) > 1:
            self.task.luck.shuffle(found)
        return found

    def ready_at(self) -> float:
        files, wanted, now = self._net.files, self._wanted, self._net.kernel.time()
        found, settled = NEVER, []
        for fd in self._changed:
            end = files[fd].end
            if end.events(now) & (wanted[fd] | BROKEN):
                return now
            at = end.next_at()
            if at == NEVER:
                settled.append(fd)
            elif now < at < found:
                found = at
        for fd in settled:
            del self._changed[fd]
        return found


class Beneath:
    """What a core asks in place of the kernel, as one process of it sees that."""

    def __init__(self, net: Net, task: Task) -> None:
        self.clock = task.clock
        self._net = net
        self._poller = Poller(net, task)
        self._whats: dict[int, int] = {}
        self._reserved = 0

    def recv(self, fd: int, size: int) -> bytes:
        return self._net.files[fd].recv(size)

    def send(self, fd: int, data: bytes) -> int:
        return self._net.files[fd].send(data)

    def recv_passed(self, fd: int, size: int) -> tuple[bytes, int]:
        data, passed = self._net.files[fd].recv_passed(size)
        if not passed:
            return data, -1
        if not (self._reserved or self.reserve()):
            let_go(passed)  # the packet comes, and what was passed with it is closed
            return data, -1
        self.release()
        return data, self._net.taken_over(passed[0])

    def reserve(self) -> bool:
        try:
            self._net.may_open(self._net.kernel.running)
        except OSError:
            return False
        self._reserved += 1
        return True

    def release(self) -> None:
        self._reserved -= 1

    def send_passing(self, fd: int, data: bytes, passed: int) -> int:
        return self._net.files[fd].send(data, [passed])

    def shut(self, fd: int) -> None:
        self._net.files[fd].shutdown(socket.SHUT_WR)

    def close(self, fd: int) -> None:
        self._net.files[fd].close()

    def watch(self, fd: int, mask: int, what: int) -> None:
        if fd in self._whats:
            self._poller.modify(fd, mask)
        else:
            self._poller.register(fd, mask)
        self._whats[fd] = what

    def forget(self, fd: int) -> None:
        self._poller.unregister(fd)
        del self._whats[fd]

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return [(self._whats[fd], mask) for fd, mask in self._poller.poll()]


class Simulated(Machine):
    """The machine as one process of it sees it."""

    def __init__(self, net: Net, task: Task) -> None:
        self.monotonic = task.clock
        self.random = task.luck.random
        self.token = lambda size: task.luck.randbytes(size).hex()
        self._net = net
        self._task = task

    def poller(self) -> Poller:
        """Return what tells of descriptors when they are ready."""
        return Poller(self._net, self._task)

    def beneath(self) -> Beneath:
        return Beneath(self._net, self._task)

    def key(self) -> bytes:
        return Random(f"{self._net.kernel.seed} {self._task.name} key").randbytes(16)

    def adopt(self, fd: int) -> Any:
        return self._net.files[fd]

    def keep_back(self, most: int) -> AbstractContextManager[object]:
        return nullcontext()  # who starves can take what its supervisor passes in any case

    def tcp(self, family: socket.AddressFamily = socket.AF_INET) -> Any:
        self._net.may_open(self._task)
        end = End(self._net, room=self._net.conditions.room)
        end.host = self._task.host
        return self._net.file(end, self._task)

    def pair(self) -> Any:
        room = self._net.conditions.room
        ends = End(self._net, packets=True, room=room), End(self._net, packets=True, room=room)
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        return self._net.file(ends[0], self._task), self._net.file(ends[1], self._task)
