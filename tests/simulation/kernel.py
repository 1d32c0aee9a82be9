"""A clock that goes on only while nobody has anything to do, and the processes that live by it.

A process runs when something that it waits for is there, or when its time has come. What it does then takes some time,
in which it is alone on its processor: all others go on meanwhile.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections.abc import Callable
from typing import Any, Final, Protocol

NEVER: Final = float("inf")

BEGIN: Final = 1000.0
"""What the clock says at first, as that of a machine which has been on for a while."""

STEP_S: Final = 5e-6
"""Seconds that a step takes at least."""

LOOK_S: Final = 2e-6
DELAY_S: Final = 2e-3
"""Seconds between two looks at the clock, at most; and at times, when others want the processor."""


class Process(Protocol):
    """What runs."""

    def step(self) -> float:
        """Do what there is to do now; return when there is more in any case, NEVER if that depends on others."""


class Killed(SystemExit):
    """The process is killed in the middle of a step. No program catches this, as none does a SIGKILL.

    Of all exceptions asyncio lets but this kind pass.
    """


class Readiness(Protocol):
    """What a process waits with."""

    def ready_at(self) -> float:
        """Return from when on something that is waited for is there, as far as that is known; else NEVER."""


class Listener(Protocol):
    """Is told all that happens in a run."""

    def note(self, at: float, who: str, what: str) -> None:
        """Something happened."""

    def wrote(self, at: float, writer: str, reader: str, end: Any, data: bytes, arrives_at: float) -> None:
        """A process wrote something to an end of a connection, which another has."""


class Kernel:
    """All processes of one run, and what is to happen. The same seed gives the same run."""

    def __init__(self, seed: int, listener: Listener | None = None, crowded: float = 0.001) -> None:
        """`crowded` is how often others want the processor, of all looks at the clock."""
        self.seed = seed
        self.crowded = crowded
        self.luck = random.Random(seed)
        """What nobody has done is decided by this, and all else by that of the process which does it."""
        self.now = BEGIN
        self.running: Task | None = None
        self.tasks: list[Task] = []
        self.points: dict[str, int] = {}
        """How often each point of the program was reached."""
        self.traps: dict[tuple[str, str], Callable[[Task], None]] = {}
        """What is done to the next one of a host that reaches a point."""
        self.behind: dict[str, float] = {}
        """By how many seconds the clock of a host is behind, since it stood still."""
        self._suspended_until: dict[str, float] = {}
        self.trace = 0
        """A hash of all that happened so far."""
        self.listener = listener
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def time(self) -> float:
        """Return what it is for whoever runs."""
        return self.now if self.running is None else self.now + self.running.spent

    def note(self, who: str, what: str) -> None:
        """Something happened."""
        at = self.time()
        self.trace = zlib.crc32(f"{at - BEGIN:.6f} {who} {what}".encode(), self.trace)
        if self.listener is not None:
            self.listener.note(at, who, what)

    def trace_bytes(self, data: bytes) -> None:
        """These were written."""
        self.trace = zlib.crc32(data, self.trace)

    def suspend(self, host: str, seconds: float) -> None:
        """Have a host stand still for so long, and its clock, too. If it does so already, that may only take longer."""
        self.note(host, f"stands still, and its clock too, for {seconds:.3f} s")
        longer = self.now + seconds - max(self.now, self._suspended_until.get(host, 0.0))
        if longer <= 0:
            return
        self._suspended_until[host] = self.now + seconds
        self.behind[host] = self.behind.get(host, 0.0) + longer
        for task in self.tasks:
            if task.host == host:
                task.suspend(self.now + seconds, longer)

    def reached(self, point: str) -> None:
        """Whoever runs is at a point of its program. Raises Killed if that is to happen there."""
        self.points[point] = self.points.get(point, 0) + 1
        task = self.running
        trap = self.traps.pop((task.host, point), None) if task is not None else None
        if trap is not None and task is not None:
            trap(task)

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Have something called at that time; of what is due at once, first what was asked for first."""
        self._count += 1
        heapq.heappush(self._events, (when, self._count, call))

    def go_on(self, seconds: float) -> None:
        """Have so much time go by."""
        until = self.now + seconds
        while self.next(until):
            pass

    def next(self, until: float) -> bool:
        """Have what is due next happen; return False, and have it be `until`, if there is nothing until then."""
        events = self._events
        if not events or events[0][0] > until:
            self.now = until
            return False
        when, _, call = heapq.heappop(events)
        self.now = max(self.now, when)
        call()
        return True


class Task:
    """A process as the kernel knows it."""

    def __init__(self, kernel: Kernel, name: str, host: str, process: Process) -> None:
        self.kernel = kernel
        self.name = name
        self.host = host
        self.luck = random.Random(f"{kernel.seed} {name}")
        """Its own, so that what others do does not depend on how often it is asked."""
        self.lives = True
        self.spent = 0.0
        """Seconds of the step that is on."""
        self.waits_with: list[Readiness] = []
        self.writes_left: int | None = None
        """How often it still writes before it is killed, if it is to be."""
        self.process = process
        self._due_at = NEVER  # when it runs in any case
        self.busy_until = 0.0
        """When its last step is over."""
        self.stopped_until = 0.0
        """When it goes on that stands still."""
        self._looks_at = NEVER  # when it is looked at next
        self.starves_until = 0.0
        """Until when there are no descriptors left for it."""
        kernel.tasks.append(self)

    def time(self) -> float:
        """Return the time by the clock of its host."""
        return self.kernel.time() - self.kernel.behind.get(self.host, 0.0)

    def clock(self) -> float:
        """Return the time. To look at it takes some, so that no two looks are alike."""
        if self.kernel.running is self:
            luck = self.luck.random()
            self.spent += luck * LOOK_S if luck > self.kernel.crowded else DELAY_S * self.luck.random()
        return self.time()

    def wake(self, at: float) -> None:
        """Have it run at that time in any case, or as soon as it can."""
        self._due_at = min(self._due_at, at)
        self.look(at)

    def look(self, at: float) -> None:
        """Have it run at that time if something that it waits for is there then."""
        at = max(at, self.busy_until, self.stopped_until, self.kernel.now)
        if at < self._looks_at and self.lives:
            self._looks_at = at
            self.kernel.at(at, self._look)

    def _look(self) -> None:
        now = self.kernel.now
        if not self.lives or now != self._looks_at:
            return  # it was looked at before
        self._looks_at = NEVER
        if self.busy_until > now or self.stopped_until > now:
            self.look(now)
        elif min(self._due_at, self._ready_at()) <= now:
            self._run()
        else:
            self._look_again()

    def _ready_at(self) -> float:
        found = NEVER
        for each in self.waits_with:
            found = min(found, each.ready_at())
        return found

    def _look_again(self) -> None:
        at = min(self._due_at, self._ready_at())
        if at < NEVER:
            self.look(at)

    def _run(self) -> None:
        kernel = self.kernel
        self._due_at = NEVER
        kernel.running, self.spent = self, 0.0
        try:
            self._due_at = self.process.step() + kernel.behind.get(self.host, 0.0)
        finally:
            kernel.running = None
        kernel.trace = zlib.crc32(b"%d" % (kernel.now * 1e9), kernel.trace)
        self.busy_until = kernel.now + self.spent + STEP_S
        self.spent = 0.0
        self._look_again()

    def stop(self, seconds: float) -> None:
        """Stand still for so long, as at SIGSTOP and SIGCONT; its clock goes on."""
        self.kernel.note(self.name, f"is stopped for {seconds:.3f} s")
        self.stopped_until = max(self.stopped_until, self.kernel.now + seconds)

    def suspend(self, until: float, longer: float) -> None:
        """Stand still until then together with the clock, and so much longer than was known before."""
        self.stopped_until = max(self.stopped_until, until)
        self._due_at += longer

    def kill_here(self) -> None:
        """Kill it where it is in its step. Raises Killed."""
        self.writes_left = 0
        self.may_write()

    def hold_up(self, seconds: float) -> None:
        """Have its step, which is on, take so much longer."""
        self.spent += seconds

    def starve(self, seconds: float) -> None:
        """Have no descriptors left for so long."""
        self.kernel.note(self.name, f"has no descriptors left for {seconds:.3f} s")
        self.starves_until = self.kernel.now + seconds

    def go_on(self) -> None:
        """Stand still no longer."""
        self.stopped_until = self.kernel.now
        self.look(self.kernel.now)

    def kill_after(self, writes: int) -> None:
        """Have it killed in the middle of a step, once it has written so often."""
        self.kernel.note(self.name, f"is killed after {writes} more writes")
        self.writes_left = writes

    def may_write(self) -> None:
        """It is about to write. Raises Killed if it has been: nothing it does on its way out is done."""
        if self.writes_left == 0:
            raise Killed

    def wrote(self) -> None:
        """It has written something, which is the kernel's now. Raises Killed if that was the last."""
        if self.writes_left is not None:
            self.writes_left -= 1
            self.may_write()

    def end(self) -> None:
        """It runs no more, and waits for nothing."""
        self.kernel.note(self.name, "has ended")
        self.lives = False
        self.waits_with.clear()
