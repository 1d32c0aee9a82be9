"""A node: the crew that its supervisor has, and its workers, which are the real ones.

What the rest of the supervisor does, Node does here: it has the crew take its turns, and begins reloads.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from skywalker.address import Address
from skywalker.config import Config
from skywalker.members import Member, Snapshot
from tests.promises.history import Trouble
from tests.simulation.kernel import NEVER, Kernel, Killed, Task
from tests.simulation.machine import Net, Poller, Simulated
from workers.calls.own_node import OwnNode
from workers.engine.machine import Birth
from workers.ipc import exits, snapshots
from workers.ipc.control import Channel, Message
from workers.process.crew import Crew
from workers.process.reload import Rollout
from workers.process.slot import Process, Slot
from workers.setup.ground import JUNCTION, PUBSUB
from workers.stats.shared import SharedCounters
from workers.worker.worker import Worker

PORTS: Final = {JUNCTION: 3443, PUBSUB: 27022}
TOKENS: Final = 16

FORK_S: Final = 1e-3
SIGNAL_S: Final = 1e-4
"""Seconds until a process that was forked begins, and until its parent hears of its end."""


class Log:
    """Takes what is logged for something that happened; a bug ends the run."""

    def __init__(self, kernel: Kernel, who: str) -> None:
        self._kernel = kernel
        self._who = who

    def info(self, event: str, **fields: object) -> None:
        """Note it."""
        self._kernel.note(self._who, f"says {event}: {fields.get('reason', '')}")

    warning = info

    def error(self, event: str, **fields: object) -> None:
        """Note it, too, unless it is a mistake of the program."""
        assert event != "bug", fields
        self.info(event, **fields)


class Selector:
    """What the supervisor waits with."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._told: dict[int, Callable[[], None]] = {}

    def register(self, file: Any, events: int, data: Callable[[], None]) -> None:
        """Have `data` called when the file is ready."""
        self._poller.register(file.fileno(), events)
        self._told[file.fileno()] = data

    def unregister(self, file: Any) -> None:
        """Have nothing called any more."""
        self._poller.unregister(file.fileno())
        del self._told[file.fileno()]

    def ready(self) -> list[Callable[[], None]]:
        """Return what is to be called now."""
        return [self._told[fd] for fd, _ in self._poller.poll()]


class Signals:
    """Those of a process that gets none."""

    def __init__(self, machine: Simulated) -> None:
        self._ends = machine.pair()

    def open(self) -> None:
        """Wait for them, in vain."""

    def fileno(self) -> int:
        """Return what is never readable."""
        fd: int = self._ends[0].fileno()
        return fd


class Working(Simulated):
    """The machine as a worker sees it."""

    def signals(self, wanted: Any, ignored: Any = ()) -> Any:
        return Signals(self)


class Forking(Simulated):
    """The machine as the supervisor sees it which forks one worker."""

    def __init__(self, process: WorkerProcess) -> None:
        node = process.node
        Simulated.__init__(self, node.net, node.task)
        self._process = process

    def fork(self, birth: Birth, signals: Any) -> int:
        process, node = self._process, self._process.node
        node.forks += 1
        process.task = task = Task(node.kernel, f"{node.name}/{birth.name}.{node.forks}", node.host, process)
        process.channel_end = node.net.file(node.net.files[birth.keeps[0].fileno()].end, task)
        task.wake(node.kernel.time() + FORK_S)
        return node.forks

    def kill(self, pid: int, number: int) -> None:
        self._process.end(-number)

    def is_dead(self, pid: int) -> bool:
        return self._process.status is not None

    def reap(self, pid: int) -> int:
        assert self._process.status is not None, "it is dead"
        return self._process.status


class WorkerProcess(Process):
    """A worker as the supervisor and the kernel see it."""

    task: Task

    def __init__(self, node: Node, slot: Slot, part: int) -> None:
        self.node = node
        self.status: int | None = None
        self.worker: Worker | None = None  # once it runs
        self.channel_end: Any = None
        nobody: Any = None
        super().__init__(slot, part, nobody, lambda: None, nobody, Forking(self))

    def _live(self) -> Worker:
        return self.node.be_worker(self.slot, Channel(self.channel_end), self.part)

    def step(self) -> float:
        """Do a turn of the worker."""
        try:
            if self.worker is None:
                self.node.kernel.note(self.task.name, "begins")
                self.worker = self._live()
                self.worker.begin()
            elif not self.worker.turn():
                self.end(exits.OK)
                return NEVER
        except Killed:
            self.end(-signal.SIGKILL)
            return NEVER
        now, wait = self.task.clock(), self.worker.wait()
        return NEVER if wait is None else now + wait

    def end(self, status: int) -> None:
        """It has ended, with that status, or by a signal as a negative number."""
        if self.status is None:
            self.status = status
            if status < 0:
                self.node.suffer("kill", self.node.kernel.time())
            self.task.end()
            self.node.net.end(self.task)
            self.node.child_ended()


class Node:
    """One of a cluster."""

    def __init__(self, net: Net, name: str, host: str, workers: int, config: Config) -> None:
        kernel = net.kernel
        self.net = net
        self.kernel = kernel
        self.name = name
        self.host = host
        self.forks = 0
        self.troubles: list[Trouble] = []
        """Kills and reloads of it."""
        self._config = config
        self.task = Task(kernel, name, host, self)
        self.machine = Simulated(net, self.task)
        self._selector = Selector(self.machine.poller())
        self._rollout: Rollout | None = None
        self._has_dead = False
        self._ring: BinaryIO | None = None
        doors = {door: net.listen((host, port), workers, self.task) for door, port in PORTS.items()}
        listeners: list[Any] = [{door: each[slot] for door, each in doors.items()} for slot in range(workers)]
        tokens = tuple(sorted(kernel.luck.getrandbits(64) - 2**63 for _ in range(TOKENS)))
        self.member = Member(name, name, Address(host, PORTS[JUNCTION]), workers, True, tokens)
        self._shared = SharedCounters(workers)
        selector: Any = self._selector
        log = self.log_of(name)
        self._crew = Crew(
            listeners,
            self._shared,
            lambda slot, part: WorkerProcess(self, slot, part),
            self._heard,
            selector,
            log,
            self.machine,
        )
        self._to_start = [*self._crew.slots]
        self.task.wake(kernel.now)

    def log_of(self, who: str) -> Any:
        """Return what one of its processes logs to."""
        return Log(self.kernel, who)

    def be_worker(self, slot: Slot, channel: Channel, part: int) -> Worker:
        """Return what a worker does in its process."""
        process = next(each for each in slot.processes() if each.part == part)
        assert isinstance(process, WorkerProcess)
        net, task = self.net, process.task
        machine = Working(net, task)
        listeners: Any = {
            door: net.file(net.files[listener.fileno()].end, task) for door, listener in slot.listeners.items()
        }
        log = self.log_of(task.name)
        return Worker(
            OwnNode(self.member, "0", slot.number, None, machine),
            self._config,
            listeners,
            channel,
            log,
            self._shared.part(part),
            None,
            succeeds=slot.worker is not process,
            machine=machine,
            hand=self._shared.hands.hand(part),
        )

    def _heard(self, process: Process, message: Message) -> None:
        self.kernel.note(self.name, f"hears {type(message).__name__} of {process.pid}")

    def child_ended(self) -> None:
        """A worker is dead."""
        self._has_dead = True
        self.task.wake(self.kernel.time() + SIGNAL_S)

    def suffer(self, kind: str, until: float) -> Trouble:
        """It has trouble of that kind from now on, until then."""
        trouble = Trouble(kind, self.name, self.kernel.time(), until)
        self.troubles.append(trouble)
        return trouble

    def stop(self, victim: WorkerProcess, seconds: float) -> None:
        """Have a worker stand still for so long."""
        self.suffer("stop", self.kernel.now + seconds)
        victim.task.stop(seconds)

    def part(self, other: Node, seconds: float) -> None:
        """Have nothing pass between this node and another for so long."""
        self.suffer("part", self.kernel.now + seconds)
        self.kernel.note(self.name, f"is parted from {other.name} for {seconds:.3f} s")
        self.net.part(self.host, other.host, seconds)

    def address(self, door: str) -> tuple[str, int]:
        """Return where a door of it is."""
        return self.host, PORTS[door]

    def workers(self) -> list[WorkerProcess]:
        """Return those that live."""
        return [each for each in self._crew.processes() if isinstance(each, WorkerProcess) and not each.is_dead()]

    @property
    def serves(self) -> bool:
        """Whether there is a worker in each place that serves."""
        return self._crew.is_serving

    @property
    def reloads(self) -> bool:
        """Whether workers are being replaced."""
        return self._rollout is not None

    def follow(self, snapshot: Snapshot) -> None:
        """Have all workers follow a ring."""
        if self._ring is not None:
            self._ring.close()
        self._ring = snapshots.write(snapshot)
        self._crew.follow(self._ring)

    def close(self) -> None:
        """Give back what is real of it."""
        if self._ring is not None:
            self._ring.close()

    def reload(self) -> None:
        """Have all workers replaced, unless they are already."""
        if self._rollout is None and self._crew.is_serving:
            self.kernel.note(self.name, "reloads")
            self._rollout = Rollout(self._crew, self._config.drain_timeout_s)
            self._reload = self.suffer("reload", NEVER)
            self.task.wake(self.kernel.now)

    def step(self) -> float:
        """Do a turn of the supervisor."""
        crew = self._crew
        while self._to_start:
            crew.start(self._to_start.pop(0))
        for call in self._selector.ready():
            call()
        if self._has_dead:
            self._has_dead = False
            crew.reap()
        now = self.task.clock()
        crew.turn(now)
        if self._rollout is not None and not self._rollout.go_on():
            self._rollout = None
            self._reload.until = now
            self.kernel.note(self.name, "has reloaded")
        next_at = crew.next_at()
        return NEVER if next_at is None else max(now, next_at)
