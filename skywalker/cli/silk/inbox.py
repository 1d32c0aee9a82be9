"""The messages of `skywalker silk listen`, on their way from handlers to standard output."""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from skywalker.cli import terminal
from skywalker.cli.silk import words
from skywalker.errors import SkywalkerError


class Inbox:
    """Has the main thread print what the handlers get in theirs: it can be interrupted while it does."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lines: queue.SimpleQueue[tuple[bytes, concurrent.futures.Future[None]]] = queue.SimpleQueue()
        self._waiting_since = time.monotonic()
        self._lock = threading.Lock()
        self._is_open = False

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Take messages until the end of the block; who waits then is told that nobody prints any more."""
        self._is_open = True
        try:
            yield
        finally:
            with self._lock:
                self._is_open = False
            while not self._lines.empty():
                self._lines.get()[1].set_exception(_ended())

    def handle(self, type: str, reply: Any, data: Any) -> Any:
        """Return the reply to a message, once that is printed."""
        if self._as_json:
            line = words.result("delivered", self._waiting_since, type=type, value=data)
        else:
            line = words.printed(data)
        printed: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._lock:
            if not self._is_open:
                raise _ended()
            self._lines.put((line, printed))
        printed.result()
        return reply

    def print_next(self) -> None:
        """Wait for a message, and print it."""
        line, printed = self._lines.get()
        try:
            terminal.write(line)
        except BaseException:
            printed.set_exception(_ended())
            raise
        printed.set_result(None)
        self._waiting_since = time.monotonic()


def _ended() -> SkywalkerError:
    return SkywalkerError("the listener has ended, and has not printed this")
