"""Processes of the simulated machine: forked, signalled and reaped as real ones are, their programs done in steps."""

from __future__ import annotations

import selectors
import signal
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from tests.simulation.ends import READ, End
from tests.simulation.eventloop import EventLoop, Program
from tests.simulation.kernel import NEVER, Killed, Task
from tests.simulation.machine import Net, Poller, Simulated, Socket
from tests.simulation.threads import Event, Thread
from workers.agent.agent import Agent
from workers.engine.machine import Birth
from workers.ipc import exits
from workers.process.crew import BootError
from workers.worker.worker import Worker

FORK_S: Final = 1e-3
SIGNAL_S: Final = 1e-4
"""Seconds until a process that was forked begins, and until its parent hears of its end."""

LEAST: Final = 4
SOON_S: Final = 0.01
RESTS_S: Final = 0.0
"""A connection moves by so many calls that go to another worker for so long; and the seconds that it then stays."""

FATAL: Final = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV)
"""Signals of which a process ends; of the others it may hear."""


class Pending(End):
    """Signals that a process has not read."""

    def __init__(self, net: Net) -> None:
        End.__init__(self, net)
        self.numbers: list[int] = []

    def events(self, now: float) -> int:
        return READ if self.numbers else 0

    def next_at(self) -> float:
        return 0.0 if self.numbers else NEVER


class Signals:
    """Those that a process reads, as engine/signals.py has it."""

    def __init__(self, process: Process, wanted: Iterable[signal.Signals]) -> None:
        self._process = process
        self._wanted = {*wanted}

    def open(self) -> None:
        """Have them put where it reads them."""
        net = self._process.machine.net
        self._pending = Pending(net)
        self._socket: Socket = net.file(self._pending, self._process.task)
        self._process.signals = self

    def hold(self) -> None:
        """Nothing is lost: a child is told nothing before it has opened its own."""

    release = hold

    def fileno(self) -> int:
        """Return what is readable when there are some."""
        return self._socket.fileno()

    @property
    def are_pending(self) -> bool:
        """Whether there are some."""
        return bool(self._pending.numbers)

    def read(self) -> list[int]:
        """Return those that came, the oldest first."""
        found, self._pending.numbers = self._pending.numbers, []
        return found

    def take(self, number: int) -> None:
        """One comes; those that are not wanted are ignored."""
        if number in self._wanted:
            self._pending.numbers.append(number)
            self._pending.look(self._process.machine.net.kernel.time())


class Selector:
    """What the supervisor waits with."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, file: Any, events: int, data: Callable[[], None]) -> None:
        """Have `data` told when the file is ready."""
        fd = file.fileno()
        self._poller.register(fd, events)
        self._keys[fd] = selectors.SelectorKey(file, fd, events, data)

    def unregister(self, file: Any) -> None:
        """Have nothing told any more."""
        self._poller.unregister(file.fileno())
        del self._keys[file.fileno()]

    def select(self, timeout: float) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now."""
        return [(self._keys[fd], events) for fd, events in self._poller.poll()]


class ProcessMachine(Simulated):
    """The machine as a process sees it that has others."""

    def __init__(self, net: Net, process: Process) -> None:
        super().__init__(net, process.task)
        self.net = net
        self.process = process
        self.unix = process.task.clock
        self.pid = lambda: process.pid
        self.kill = lambda pid, number: net.processes[pid].signal(number)

    def selector(self) -> Any:
        return Selector(self.poller())

    def signals(self, wanted: Iterable[signal.Signals], ignored: Iterable[signal.Signals] = ()) -> Any:
        return Signals(self.process, wanted)

    def fork(self, birth: Birth, signals: Any) -> int:
        parent = self.process
        parent.forks += 1
        child = Process(self.net, f"{parent.task.name}/{birth.name}.{parent.forks}", parent.task.host, parent.ended)
        parent.children.append(child)
        child.parent = parent
        kept: Any = [self.net.file(self.net.files[each.fileno()].end, child.task) for each in birth.keeps]
        child.begin(birth.make(child.machine, kept), self.net.kernel.time() + FORK_S)
        return child.pid

    def thread(self, name: str, call: Callable[[], None]) -> Any:
        process = self.process
        thread = Thread(self.net.kernel, f"{process.task.name} {name}", process.task.host, call)
        process.threads.append(thread)
        return thread

    def event(self) -> Any:
        return Event(self.net.kernel)

    def is_dead(self, pid: int) -> bool:
        return self.net.processes[pid].status is not None

    def reap(self, pid: int) -> int:
        child = self.net.processes.pop(pid)
        self.process.children.remove(child)
        assert child.status is not None, "nobody waits for one that lives"
        return child.status


class Process:
    """One process, from its fork until it is reaped. Those that it has forked are killed when it ends."""

    def __init__(self, net: Net, name: str, host: str, ended: Callable[[Process], None]) -> None:
        """`ended` is told when this, or one that comes of it, has ended."""
        self.task = Task(net.kernel, name, host, self)
        self.ended = ended
        self.pid = net.add_process(self)
        self.machine = ProcessMachine(net, self)
        self.signals: Signals | None = None
        self.parent: Process | None = None
        self.children: list[Process] = []
        self.threads: list[Thread | Program] = []
        self.forks = 0
        self.status: int | None = None
        self._last: int | None = None  # the signal of which it ends once it goes on
        self.program: Any = None
        self._loop: EventLoop | None = None
        self._course: Generator[float, None, int] | None = None

    def begin(self, program: Any, at: float) -> None:
        """Have it do, from that time on, what it is for."""
        self.program = program
        self._course = self._live_async() if isinstance(program, Agent) else self._live()
        self.task.wake(at)

    def step(self) -> float:
        """Do some of it."""
        assert self._course is not None, "it has begun"
        if self._last is not None:
            self.end(-self._last)
            return NEVER
        try:
            return next(self._course)
        except StopIteration as end:
            self.end(end.value)
        except BootError:
            self.end(exits.BOOT)
        except Killed:
            self.end(-signal.SIGKILL)
        return NEVER

    def _live(self) -> Generator[float, None, int]:
        self.machine.net.kernel.note(self.task.name, "begins")
        program, clock = self.program, self.task.clock
        program.begin()
        calls = self.machine.net.conditions.drawn_after
        if calls and isinstance(program, Worker):
            program._hub.core.draw_after(calls, min(calls, LEAST), SOON_S, RESTS_S)
        while True:
            now, wait = clock(), program.wait()
            yield NEVER if wait is None else now + wait
            if not program.turn():
                return exits.OK

    def _live_async(self) -> Generator[float, None, int]:
        self.machine.net.kernel.note(self.task.name, "begins")
        self._loop = loop = EventLoop(self.machine.net, self.task)
        running = loop.create_task(self.program.live())
        while not running.done():
            yield loop.turn()
        running.result()
        return int(self.program.status)

    @property
    def slot(self) -> int | None:
        """Its place, if it is a worker."""
        return self.program._node.slot if isinstance(self.program, Worker) else None

    @property
    def reached(self) -> set[str]:
        """The nodes to which siblings of it are linked through it, if it is a worker."""
        hub = getattr(self.program, "_hub", None)
        return set() if hub is None else {passage.place.node for passage in hub.peers.relays._passing}

    @property
    def has_signals(self) -> bool:
        """Whether there are some that it has not read."""
        return self.signals is not None and self.signals.are_pending

    def signal(self, number: int) -> None:
        """It gets a signal."""
        kernel = self.machine.net.kernel
        if self.status is not None:
            return
        if number in FATAL and number != signal.SIGKILL and self.task.stopped_until > kernel.time():
            self._last = number
            self.task.wake(kernel.time())
        elif number in FATAL and self.task.busy_until > kernel.now and kernel.running is not self.task:
            # What it does in the step that is on is done already, and others will hear of that.
            kernel.at(self.task.busy_until, lambda: self.end(-number))
        elif number in FATAL:
            self.end(-number)
        elif self.signals is not None:
            self.signals.take(number)

    def stop(self, seconds: float) -> None:
        """Have it stand still for so long, with all its threads."""
        for task in (self.task, *(thread.task for thread in self.threads if thread.task.lives)):
            task.stop(seconds)

    def end(self, status: int) -> None:
        """It has ended, with that status, or by a signal as a negative number."""
        if self.status is not None:
            return
        self.status = status
        net = self.machine.net
        self.task.end()
        net.end(self.task)
        for thread in self.threads:
            thread.kill()
        if self._loop is not None:
            self._loop.drop()
        self.ended(self)
        for child in [*self.children]:
            child.end(-signal.SIGKILL)
        parent = self.parent
        if parent is not None:
            net.kernel.at(net.kernel.time() + SIGNAL_S, lambda: parent.signal(signal.SIGCHLD))
