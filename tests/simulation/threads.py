"""Threads of a simulated process: real ones, each of which runs only while the kernel has it run.

So what blocks can be simulated without being taken apart: it waits for a time, or for an event that another sets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from tests.simulation.kernel import NEVER, Kernel, Killed, Task

PATIENCE_S: Final = 60.0
"""Real seconds for a thread to come to its next pause: it would hang the run."""


class Thread:
    """One of them, from the time at which it is made."""

    def __init__(self, kernel: Kernel, name: str, host: str, call: Callable[[], None]) -> None:
        self.task = Task(kernel, name, host, self)
        self._call = call
        self._error: BaseException | None = None
        self._is_over = False
        self._is_killed = False
        self._next_at = NEVER
        self._over = Event(kernel)
        self._run, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._real = threading.Thread(target=self._live, name=name, daemon=True)
        self._real.start()
        self.task.wake(kernel.time())

    def _live(self) -> None:
        self._run.acquire()
        try:
            if not self._is_killed:
                self._call()
        except Killed:
            pass
        except BaseException as error:
            self._error = error
        self._is_over, self._next_at = True, NEVER
        self._paused.release()

    def step(self) -> float:
        """Have it run to its next pause."""
        self._run.release()
        assert self._paused.acquire(timeout=PATIENCE_S), f"{self.task.name} hangs"
        if self._error is not None:
            raise self._error
        if self._is_over:
            self.task.end()
            self._over.set()
        return self._next_at

    def pause(self, until: float) -> None:
        """Let others run until then, by the clock of its host, or until it is woken. The thread itself says this."""
        self._next_at = until
        self._paused.release()
        self._run.acquire()
        if self._is_killed:
            raise Killed

    def join(self) -> None:
        """Wait for its end."""
        self._over.wait()

    def kill(self) -> None:
        """End it where it is, with its process."""
        if not self._is_over:
            self._is_killed = True
            self._run.release()
            self._real.join(PATIENCE_S)
            self.task.end()


class Event:
    """As threading.Event. Only a thread waits for it; anybody sets it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._is_set = False
        self._waiting: list[Task] = []

    def is_set(self) -> bool:
        """Whether it is."""
        return self._is_set

    def set(self) -> None:
        """Have those go on who wait for it."""
        self._is_set = True
        for task in self._waiting:
            task.wake(self._kernel.time())
        self._waiting.clear()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it, for so many seconds at most; return whether it is set."""
        task = self._kernel.running
        thread = task and task.process
        assert isinstance(thread, Thread), "others may not block"
        until = NEVER if timeout is None else thread.task.time() + timeout
        while not self._is_set and thread.task.time() < until:
            self._waiting.append(thread.task)
            thread.pause(until)
        return self._is_set


class Condition:
    """As threading.Condition, but for the lock: who has that lets nobody else run before it waits."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._news = Event(kernel)

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: object) -> None:
        """There is nothing to let go of."""

    def notify_all(self) -> None:
        """Have those look who wait for something."""
        news, self._news = self._news, Event(self._kernel)
        news.set()

    def wait_for(self, check: Callable[[], bool]) -> bool:
        """Wait until something is so."""
        while not check():
            self._news.wait()
        return True


def sleep(kernel: Kernel, seconds: float) -> None:
    """Have the thread that runs wait for so long."""
    Event(kernel).wait(seconds)
