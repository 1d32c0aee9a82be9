"""Threads that wait for calls, over any core.

One lock guards the core and is never held while waiting. A thread that waits for a call
sleeps on a lock of its own, which whoever ends the call releases.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from skywalker.clients.call import Call, PubSubKind
from skywalker.clients.core import Core
from skywalker.clients.machine import MACHINE
from skywalker.clients.requests import Kind
from skywalker.deadlines import PRECISION_S
from skywalker.errors import Closed
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

SLACK_S: Final = PRECISION_S
"""Seconds after which a deadline that has passed is surely found due."""


class Pending(Call):
    """A call under way, as begin() returns it."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self._driver = driver

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        return self.ended or self._driver.poll(self)

    def result(self) -> Any:
        """Wait for the outcome and return it.

        Raises TimedOut, Unreachable, Closed, Cancelled, or what the node refused the call with.
        An exception that interrupts the waiting, such as KeyboardInterrupt, cancels the call.
        """
        if not self.ended:
            self._driver.wait(self)
        if self.error is not None:
            raise self.error
        return self.value


class FirstOf(Pending):
    """What a thread waits for that waits for any of several calls: no call itself, it ends with the first of them."""

    __slots__ = ()

    def __init__(self, driver: Driver, until: float) -> None:
        super().__init__(driver)
        self.id = 0  # of none
        self.expires = until


class Driver:
    """Runs the calls of threads."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.is_closed = False
        self.machine = MACHINE
        self._lock = threading.Lock()
        self._sleepers: dict[threading.Lock, None] = {}  # locks of threads that wait to be woken

    def now(self) -> float:
        """Return the time, in seconds on the clock that deadlines are of."""
        return time.monotonic()

    # Calls.

    def issue(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, however much is still to be written."""
        call = Pending(self)
        with self._lock:
            if self.is_closed:
                self.check_open()
            self.core.begin(call, kind, arguments, timeout, time.monotonic())
            self._act()
        return call

    def begin(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, and let the node keep up."""
        call = self.issue(kind, arguments, timeout)
        self.wait_for_room(call)
        return call

    def meet(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        """Start a call, and return it once it has ended."""
        call = self.issue(kind, arguments, timeout)
        self.wait_for_room(call)
        if not call.ended:
            self.wait(call)
        return call

    def wait_for_room(self, call: Pending) -> None:
        """Return once more may be written after `call`."""

    def wait_until_written(self, call: Pending) -> None:
        """Return once `call` is given to the kernel, as far as that takes it."""
        self.wait_for_room(call)

    def wait(self, call: Pending, until: float = math.inf) -> None:
        """Return once `call` has ended, or the time is `until`; abandon it if interrupted."""
        try:
            while not call.ended and time.monotonic() < until:
                self._sleep(call, until)
        except BaseException:
            self.abandon(call)
            raise

    def wait_for_any(self, calls: Iterable[Pending], until: float) -> None:
        """Return once one of `calls` has ended, or the time is `until`. None is abandoned."""
        first, awaited = FirstOf(self, until), [*calls]
        with self._lock:
            if any(call.ended for call in awaited):
                return
            for call in awaited:
                call.waiters = [*(call.waiters or ()), first]
        try:
            self.wait(first, until)
        finally:
            with self._lock:
                for call in awaited:
                    if call.waiters is not None:  # it has not ended
                        call.waiters.remove(first)

    def poll(self, call: Pending) -> bool:
        """Return whether `call` has ended by now, without waiting."""
        with self._lock:
            self.core.tick(time.monotonic())
            self._act()
        return call.ended

    def abandon(self, call: Pending) -> None:
        """End `call`, unless it has ended, because nobody wants its outcome."""
        if not call.ended:
            with self._lock:
                self.core.abandon(call, time.monotonic())
                self._act()

    def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        """End a call with Cancelled if it still waits; return whether it did."""
        canceller = Pending(self)
        with self._lock:
            self.check_open()
            self.core.cancel(call, canceller, timeout, time.monotonic())
            self._act()
        return canceller.result() is True

    def aside(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns that blocks."""
        return function(*arguments)

    def close(self) -> None:
        """End every call with Closed."""
        with self._lock:
            self.is_closed = True
            self.core.close(Closed("the client was closed"))
            self._act()

    def check_open(self) -> None:
        """Raise Closed if the client was closed."""
        if self.is_closed:
            raise Closed("the client is closed")

    def _sleep(self, call: Pending, until: float = math.inf) -> None:
        """Wait until `call` may have ended, its time is over, this thread is needed, or the time is `until`."""
        sleeper = threading.Lock()
        sleeper.acquire()
        with self._lock:
            if call.ended or self._is_needed(call):
                return
            if call.waiters is None:
                call.waiters = []
            call.waiters.append(sleeper)
            self._sleepers[sleeper] = None
        try:
            wake_at = min(call.expires + SLACK_S, until)
            woken = sleeper.acquire(timeout=max(0.0, wake_at - time.monotonic()))
        finally:
            with self._lock:
                self._sleepers.pop(sleeper, None)
                if call.waiters is not None:  # it has not ended
                    call.waiters.remove(sleeper)
        if not woken:
            with self._lock:
                self.core.tick(time.monotonic())
                self._act()

    def _is_needed(self, call: Pending) -> bool:
        """Whether a thread that waits has something else to do than to sleep. The lock is held."""
        return False

    def _act(self) -> None:
        """Do what the core wants done, after every use of it. The lock is held."""
        self._wake_ended()

    def _wake_ended(self) -> None:
        ended = self.core.ended
        if ended:
            for call in ended:
                if call.waiters is not None:
                    self._wake(call.waiters)
                    call.waiters = None
            ended.clear()

    def _wake(self, waiters: list[Any]) -> None:
        for waiter in waiters:
            if isinstance(waiter, FirstOf):
                if not waiter.ended:
                    waiter.end()
                    self._wake(waiter.waiters or [])
                    waiter.waiters = None
            elif waiter in self._sleepers:
                del self._sleepers[waiter]
                waiter.release()
