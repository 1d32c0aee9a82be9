"""The thread in which one serve() runs: it runs handlers, is told to stop, and others wait for its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from skywalker.clients.blocking.driver import Driver, Pending

Handler = Callable[[Any], Any]
"""What answers requests."""

STOP_CHECK_S: Final = 0.1
"""Seconds between looks at the event that says to stop, as nothing wakes who waits for a call when it is set."""


class Host:
    """Made in that thread. `finish` is called once `stop` is set, if there is one."""

    def __init__(self, driver: Driver, stop: threading.Event | None, finish: Callable[[], None]) -> None:
        self._driver = driver
        self._stop = stop
        self._finish = finish
        self._thread = threading.get_ident()
        self._ended = threading.Event()

    def watch(self, take: Pending) -> None:
        """Wait for a request, or to be told to stop."""
        if self._stop is None:
            return
        while not take.ended:
            self._driver.wait(take, self._driver.now() + STOP_CHECK_S)
            if self._stop.is_set():
                self._finish()

    def run(self, handler: Handler, value: Any) -> Any:
        """Return what the handler returns."""
        return handler(value)

    def wait(self, until: float) -> None:
        """Wait until the serve() has ended, or the time is `until`, unless that is asked in its own thread."""
        if self._thread != threading.get_ident():
            self._ended.wait(max(0.0, until - self._driver.now()))

    def end(self) -> None:
        """The serve() has ended."""
        self._ended.set()
