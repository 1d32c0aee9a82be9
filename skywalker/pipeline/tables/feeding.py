"""What feeds a stream: a thread that receives into a spool, while Spark is busy with batches.

Into a durable spool it receives ahead, up to some batches, and acknowledges what is on disk. What
is in a temporary one would be lost with the process: there it acknowledges no more than Spark asks
for, and what has come besides waits, unacknowledged, with its senders.

The thread is in a process of its own, which Spark's process asks. Were they one, and it was killed, Spark would end
the query without a cause: nobody would be left to tell it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Concatenate, Final, NoReturn, ParamSpec, TypeVar

from skywalker.errors import ConfigError, SkywalkerError
from skywalker.pipeline.mistakes import Losses, told_plainly
from skywalker.pipeline.tables.reading import Reading
from skywalker.pipeline.tables.receiving import Chunk, Receiver
from skywalker.pipeline.tables.spool import Extent, Spool, open_spool

AHEAD: Final = 4
"""Batches that a durable spool may hold before senders have to wait: enough to bridge one that takes long."""

TURN_S: Final = 1.0
"""Seconds that the thread waits for values before it looks around."""

CHUNK_ROWS: Final = 50_000
"""Rows that are written at once, more than ever come at once."""

STOP_S: Final = 5.0


class Feed:
    """The rows of a stream as they come. Made on the driver, when the first batch is planned."""

    def __init__(self, reading: Reading) -> None:
        """Open the spool and connect.

        Raises ConfigError, DataLossError if the spool is damaged, or Unreachable if no node answers.
        """
        self._reading = reading
        self._subscribes = reading.method == "subscribe"
        self._losses = Losses(reading.fails_on_loss)
        self._gaps = 0  # that a subscription has had
        self._wanted = 0  # the row up to which Spark has asked for rows
        self._stopping = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self.spool: Spool = open_spool(reading.spool)
        self._receiver = Receiver(reading, cancelled=lambda: self._stopping)
        try:
            self._notice_damage()
            self._receiver.__enter__()
        except BaseException:
            self.spool.close()
            raise
        self._thread = threading.Thread(target=self._run, name="skywalker-feed", daemon=True)
        self._thread.start()

    def _notice_damage(self) -> None:
        damaged = self.spool.damaged
        if damaged:
            files = ", ".join(map(str, damaged))
            self._losses.report(
                f"option 'spool': damaged, so that rows may be lost: {files} (all rows that are whole are there, and"
                " the file stays, under a name that ends in .damaged)"
            )
            self.spool.set_aside()

    def first(self) -> int:
        """Return the number of the first row that is not committed."""
        return self.spool.first

    def start_at(self, row: int) -> None:
        """Take what is before this row as committed or lost, and number what comes from it on at least."""
        with self._changed, self._spooling():
            self.spool.start_at(row)

    def await_rows(self, start: int, most: int, wait_s: float) -> int:
        """Return the row before which a batch ends that begins at `start`: at most so many rows, at least one.

        Waits so many seconds for the first row, and then again for the batch to be full; returns `start` if none
        comes. Raises what ended the receiving.
        """
        with self._changed:
            self._wanted = start + most
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._error or self.spool.end > start, wait_s)
            if self.spool.end > start:
                deadline = time.monotonic() + wait_s
                while self.spool.end < start + most and not self._error and self._pause(deadline):
                    pass
            self._check()
            end = min(self.spool.end, start + most)
            self._wanted = end
            return end

    def _pause(self, deadline: float) -> bool:
        """Wait for more rows; whether there is time left."""
        left = deadline - time.monotonic()
        return left > 0 and (self._changed.wait(left) or time.monotonic() < deadline)

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def slices(self, start: int, end: int, parts: int) -> list[list[Extent]]:
        """Return where rows are, as Spool does."""
        return self.spool.slices(start, end, parts)

    def commit(self, row: int) -> None:
        """Spark is done with all rows before this one. Raises ConfigError if the spool is gone."""
        with self._changed, self._spooling():
            self.spool.commit(row)
            self._changed.notify_all()

    def report(self) -> dict[str, Any]:
        """Return what has happened so far, for Spark's progress."""
        counts = self._receiver.counts
        return {
            "row": self.spool.end,
            "spooled": self.spool.end - self.spool.first,
            "waits": counts.waits,
            "timeouts": counts.timeouts,
            "connections": counts.connections,
            "connected": self._receiver.is_connected,
        }

    def stop(self) -> None:
        """End the receiving, and let go of the spool."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(STOP_S)
        self._receiver.close()
        self.spool.close()

    # The thread.

    def _run(self) -> None:
        try:
            while (room := self._await_room()) > 0:
                chunk = self._receiver.receive(TURN_S, min(room, CHUNK_ROWS))
                if chunk:
                    self._keep(chunk)
                self._notice_gaps()
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _await_room(self) -> int:
        """Return how many rows may be received, once there are any; 0 at the end."""
        with self._changed:
            while not self._stopping and not self._room():
                self._changed.wait()
            return 0 if self._stopping else self._room()

    def _room(self) -> int:
        if self._subscribes:
            return CHUNK_ROWS  # what is not read is lost
        ahead = self.spool.first + AHEAD * self._reading.rows_per_batch if self.spool.durable else 0
        return max(0, max(self._wanted, ahead) - self.spool.end)

    def _keep(self, chunk: Chunk) -> None:
        with self._changed, self._spooling():
            # Spark may have stopped waiting meanwhile.
            chunk, rest = chunk.split(self._room())
            self._receiver.put_back(rest)
            if chunk:
                self.spool.append(self._receiver.grouped(chunk))
                self.spool.seal()
                self._changed.notify_all()
        self._receiver.acknowledge(chunk)

    @contextlib.contextmanager
    def _spooling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = self.spool.directory
            raise ConfigError(f"option 'spool': {where} cannot be written to: {error.strerror}") from error

    def _notice_gaps(self) -> None:
        """A subscription that was interrupted has missed what was published meanwhile."""
        lost = self._receiver.counts.connections - self._receiver.is_connected
        if self._subscribes and lost > self._gaps:
            self._gaps = lost
            topics, cause = ", ".join(self._reading.topics), self._receiver.cause
            self._losses.report(
                f"the subscription to {topics} was interrupted ({cause}): what was published meanwhile is lost"
            )


P = ParamSpec("P")
T = TypeVar("T")


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

    def stop(self) -> None:
        """End it, if it has not ended."""
        with contextlib.suppress(SkywalkerError):
            self.ask(Feed.stop)
        self._connection.close()
        self._wait()

    @told_plainly()
    def ask(self, method: Callable[Concatenate[Feed, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what a method of the Feed does."""
        try:
            self._connection.send((method.__name__, arguments, named))
        except OSError:
            raise self._lost() from None
        answer: T = self._answer()
        return answer

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
            # Most of those for real time have no name.
            name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
            self._end = f"was killed by {name}" if code < 0 else f"ended with status {code}"
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
    while name != Feed.stop.__name__:
        name, arguments, named = connection.recv()
        try:
            answer = getattr(feed, name)(*arguments, **named)
        except Exception as error:
            answer = error
        connection.send(answer)
