"""Many values, in order, several of them on their way at a time.

One thread reads values and begins their calls; the main thread waits for the calls in their
order. So a value leaves as soon as it was read, and an outcome is told as soon as it is known.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from skywalker.cli import exits, terminal
from skywalker.cli.options import failed, result
from skywalker.errors import Closed, LocalProtocolError, SkywalkerError, Unreachable
from skywalker.json_form import FormError


class Pending(Protocol):
    """A call under way."""

    def result(self) -> object:
        """Wait for its outcome; raises a SkywalkerError if it failed."""


Begin = Callable[[Any], Pending]
"""Starts the call of one value. Raises a SkywalkerError if it cannot be made."""


class Begun(NamedTuple):
    """A value that was read: its line, from 1, when it left, and its call, or why there is none."""

    line: int
    started: float
    call: Pending | SkywalkerError


class Stream:
    """The values of one topic on their way; `begin` starts one of them, and `word` says that one got there."""

    def __init__(self, begin: Begin, in_flight: int, keep_going: bool, as_json: bool, word: str = "delivered") -> None:
        self._start = begin
        self._keep_going = keep_going
        self._as_json = as_json
        self._word = word
        self._room = threading.Semaphore(in_flight)
        self._begun: queue.SimpleQueue[Begun | BaseException | None] = queue.SimpleQueue()
        self._stopping = False
        self._beginning = threading.Lock()  # held from the look at _stopping until the call is in the queue

    def send(self, values: Iterator[Any]) -> int:
        """Send them all, or until one did not get there; return the exit status, that of the first failure."""
        # A daemon: it may wait for standard input when all is over.
        threading.Thread(target=self._read, args=(values,), daemon=True).start()
        status = exits.OK
        stragglers: dict[str, list[int]] = {}  # by what became of them
        while (begun := self._next()) is not None:
            error = _outcome(begun.call)
            self._room.release()
            if self._as_json:
                line = result(self._word, begun.started, line=begun.line)
                terminal.write(failed(error, begun.started, line=begun.line) if error else line)
            elif error and self._stopping:
                stragglers.setdefault(exits.word(error), []).append(begun.line)
            elif error:
                terminal.complain(f"line {begun.line}: {error}")
            if error:
                status = status or exits.of(error)
                if not self._keep_going or isinstance(error, Unreachable):
                    with self._beginning:
                        self._stopping = True
        for outcome, lines in stragglers.items():
            terminal.complain(f"{outcome}, of lines that were on their way: {_ranges(lines)}")
        return status

    def _next(self) -> Begun | None:
        try:
            item = self._begun.get(block=not self._stopping)
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    def _read(self, values: Iterator[Any]) -> None:
        line = 0
        end: BaseException | None = None
        try:
            while True:
                line += 1
                refused: SkywalkerError | None = None
                value = None
                try:
                    value = next(values)
                except StopIteration:
                    break
                except FormError as error:
                    refused = LocalProtocolError(str(error))
                self._room.acquire()
                with self._beginning:
                    if self._stopping:
                        break
                    self._begun.put(Begun(line, time.monotonic(), refused or self._begin(value)))
        except Closed:
            pass  # the main thread has left
        except BaseException as error:
            end = error
        self._begun.put(end)

    def _begin(self, value: Any) -> Pending | SkywalkerError:
        try:
            return self._start(value)
        except Closed:
            raise
        except SkywalkerError as error:
            return error


def _outcome(call: Pending | SkywalkerError) -> SkywalkerError | None:
    if isinstance(call, SkywalkerError):
        return call
    try:
        call.result()
    except SkywalkerError as error:
        return error
    return None


def _ranges(lines: list[int]) -> str:
    """Return ascending numbers the short way: "2-4, 7"."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and runs[-1][1] == line - 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
