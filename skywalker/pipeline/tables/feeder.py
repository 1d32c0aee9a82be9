"""The process that receives for a stream: it has the feed, and Spark's process asks it.

Were they one, and it was killed, Spark would end the query without a cause: nobody would be left to tell it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from skywalker.errors import SkywalkerError
from skywalker.pipeline.mistakes import told_plainly
from skywalker.pipeline.tables.feeding import Feed
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.spool import Extent

_STOP = "stop"


class ReceiverLostError(SkywalkerError):
    """The process that receives for a stream has ended, and not because it was asked to."""

    advice = "start the query again"


class Feeder:
    """A Feed in a process of its own. What that raises is raised here, and ReceiverLostError if it has ended."""

    def __init__(self, reading: Reading) -> None:
        """Start it. Raises what Feed() does."""
        self._connection, theirs = multiprocessing.Pipe()
        self._end = ""  # of the process, once it has ended: how
        self._pid = os.fork()
        if self._pid == 0:
            self._connection.close()
            _live(theirs, reading)
        theirs.close()
        try:
            self._answer()
        except BaseException:
            self.stop()
            raise

    def first(self) -> int:
        """See Feed."""
        return int(self._ask("first"))

    def start_at(self, row: int) -> None:
        """See Feed."""
        self._ask("start_at", row)

    def await_rows(self, start: int, most: int, wait_s: float) -> int:
        """See Feed."""
        return int(self._ask("await_rows", start, most, wait_s))

    def slices(self, start: int, end: int, parts: int) -> list[list[Extent]]:
        """See Feed."""
        found: list[list[Extent]] = self._ask("slices", start, end, parts)
        return found

    def commit(self, row: int) -> None:
        """See Feed."""
        self._ask("commit", row)

    def report(self) -> dict[str, Any]:
        """See Feed."""
        told: dict[str, Any] = self._ask("report")
        return told

    def stop(self) -> None:
        """End it, if it has not ended."""
        with contextlib.suppress(SkywalkerError):
            self._ask(_STOP)
        self._connection.close()
        self._wait()

    @told_plainly()
    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            self._connection.send((name, arguments))
        except OSError:
            raise self._lost() from None
        return self._answer()

    @told_plainly()
    def _answer(self) -> Any:
        try:
            answer = self._connection.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _lost(self) -> ReceiverLostError:
        return ReceiverLostError(f"process {self._pid}, which received for this stream, {self._wait()}")

    def _wait(self) -> str:
        """Wait until it has ended; return how it did."""
        if not self._end:
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        return self._end


def _live(connection: Connection, reading: Reading) -> NoReturn:
    """What the process does from its fork to its end."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever interrupts Spark's process ends this one with it
        threading.Thread(target=_end_with_spark, args=(connection.fileno(),), daemon=True).start()
        _serve(connection, reading)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def _end_with_spark(connection: int) -> None:
    """End at once when Spark's process has, whatever is under way: the next query wants the spool."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    poll.poll()
    os._exit(1)


def _serve(connection: Connection, reading: Reading) -> None:
    try:
        feed = Feed(reading)
    except Exception as error:
        connection.send(error)
        return
    connection.send(None)
    name = ""
    while name != _STOP:
        name, arguments = connection.recv()
        try:
            answer = getattr(feed, name)(*arguments)
        except Exception as error:
            answer = error
        connection.send(answer)
