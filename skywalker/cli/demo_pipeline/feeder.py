"""The demo's lines on their way to a topic."""

from __future__ import annotations

import collections
import threading
import time
from typing import Final, Self

import skywalker
from skywalker.errors import Closed, SkywalkerError

LINES: Final = "demo/lines"
"""The topic."""

IN_FLIGHT: Final = 64
"""Sends at a time."""


class Feeder:
    """Sends lines to a topic, evenly spread over some seconds, within a `with` statement."""

    def __init__(self, address: str, lines: list[str], seconds: float) -> None:
        self.sent = 0
        self.failed: SkywalkerError | None = None
        self.started = time.monotonic()
        self._junction = skywalker.connect(address)
        self._lines = lines
        self._pause = seconds / max(1, len(lines))
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._junction.close()
        self._thread.join()

    def seconds(self) -> float:
        """Return how long it has been sending."""
        return time.monotonic() - self.started

    def _feed(self) -> None:
        calls = collections.deque[skywalker.Pending]()
        try:
            for number, line in enumerate(self._lines):
                time.sleep(max(0.0, self.started + number * self._pause - time.monotonic()))
                calls.append(self._junction.begin("send", LINES, line))
                while calls and (len(calls) >= IN_FLIGHT or calls[0].done()):
                    self._delivered(calls.popleft())
            while calls:
                self._delivered(calls.popleft())
        except Closed:
            pass  # it is over
        except SkywalkerError as error:
            self.failed = error

    def _delivered(self, call: skywalker.Pending) -> None:
        call.result()
        self.sent += 1
