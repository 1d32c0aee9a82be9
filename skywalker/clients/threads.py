"""Threads that wait for calls, over any core: what blocking clients have in common.

One lock guards the core and is never held while waiting. A thread that waits for a call
sleeps on a lock of its own, which whoever ends the call releases.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any, Final

from skywalker.clients.call import Core
from skywalker.clients.interface import Junction, Pending
from skywalker.clients.requests import Kind, milliseconds
from skywalker.deadlines import PRECISION_S
from skywalker.errors import Closed
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

SLACK_S: Final = PRECISION_S
"""Seconds after which a deadline that has passed is surely found due."""


class ThreadedJunction(Junction):
    """A junction whose callers are threads."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._sleepers: dict[threading.Lock, None] = {}  # locks of threads that wait to be woken
        self._closed = False
        self._servings = set()

    def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        canceller = Pending(self)
        with self._lock:
            self._check_open()
            self._core.cancel(call, canceller, timeout, time.monotonic())
            self._act()
        return canceller.result() is True

    def close(self, drain: float = 0.0) -> None:
        if milliseconds(drain):
            self._finish_serving(time.monotonic() + drain)
        with self._lock:
            self._closed = True
            self._core.close(Closed("the client was closed"))
            self._act()

    def _finish_serving(self, until: float) -> None:
        servings = [*self._servings]
        for serving in servings:
            serving.finish(max(0.0, until - time.monotonic()))
        for serving in servings:
            serving.wait(max(0.0, until - time.monotonic()))

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the client is closed")

    def _meet_node(self) -> None:
        pass  # there is none

    def _begin(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        call = Pending(self)
        with self._lock:
            self._check_open()
            self._core.begin(call, kind, arguments, timeout, time.monotonic())
            self._act()
        return call

    def _abandon(self, call: Pending) -> None:
        if not call.ended:
            with self._lock:
                self._core.abandon(call, time.monotonic())
                self._act()

    def _poll(self, call: Pending) -> bool:
        with self._lock:
            self._core.tick(time.monotonic())
            self._act()
        return call.ended

    def _wait(self, call: Pending, until: float = math.inf) -> None:
        try:
            while not call.ended and time.monotonic() < until:
                self._sleep(call, until)
        except BaseException:
            self._abandon(call)
            raise

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
        if not woken:
            with self._lock:
                self._core.tick(time.monotonic())
                self._act()

    def _is_needed(self, call: Pending) -> bool:
        """Whether a thread that waits has something else to do than to sleep. The lock is held."""
        return False

    def _act(self) -> None:
        """Do what the core wants done, after every use of it. The lock is held."""
        self._wake_ended()

    def _wake_ended(self) -> None:
        ended = self._core.ended
        if ended:
            for call in ended:
                if call.waiters is not None:
                    self._wake(call.waiters)
                    call.waiters = None
            ended.clear()

    def _wake(self, waiters: list[threading.Lock]) -> None:
        for sleeper in waiters:
            if sleeper in self._sleepers:
                del self._sleepers[sleeper]
                sleeper.release()
