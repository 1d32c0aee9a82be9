"""Sends messages to topics over one connection, many at a time, whatever becomes of the node at its other end.

The connection goes to any node: it takes every call, and hands on what others own. One that is lost, that ends or
that hangs is replaced, if need be by one to another node, and what was not answered goes out again over the new one.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Iterable, Mapping
from typing import Final, Self

from skywalker.clients.blocking.connection import Connection, wait_for
from skywalker.clients.settings import CONNECT_TIMEOUT_S, Settings
from skywalker.clients.stream import Silence
from skywalker.dialling import cause_of
from skywalker.errors import Busy, RemoteProtocolError, SkywalkerError, TimedOut, Unreachable
from skywalker.pipeline.tables.finding import Finder
from skywalker.pipeline.tables.flight import Flight, shown

BUSY_PAUSE_S: Final = 0.1
"""Seconds until a node gets again what it was too busy for."""

STUCK_S: Final = 30.0
"""Seconds without an answer to any send, beside twice the time that each has, after which the whole is given up."""

TOPICS_TOLD: Final = 3
"""Topics that an error names."""

FLUSH_AT: Final = 64
"""Frames that are written at once: few system calls, and little memory even if each is of the largest size."""


class Sender:
    """Sends the messages of one partition. Open it by a `with` statement. Not for use by two threads at a time."""

    def __init__(self, settings: Settings, timeout_ms: int, window: int, *, missed_is_fatal: bool) -> None:
        """Give each message `timeout_ms` to be taken, and have up to `window` under way."""
        self.flight = Flight(timeout_ms, window)
        self._timeout = timeout_ms / 1000
        self._missed_is_fatal = missed_is_fatal
        self._finder = Finder(settings)
        self._connection: Connection | None = None
        self._came = b""  # over it before it was ours
        self._silence = Silence()
        self._answered = 0  # messages, when it was last looked
        self._answered_at = 0.0
        self._try_again_at = -math.inf

    def __enter__(self) -> Self:
        """Connect. Raises Unreachable if no node answers, RequestError if one refuses to be spoken to."""
        try:
            self._connect(CONNECT_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the connection, which cancels what is under way."""
        self._drop()
        self._finder.close()

    def send(self, messages: Iterable[tuple[bytes, bytes]]) -> None:
        """Send pairs of an encoded topic and an encoded value; return when the last is on its way.

        Raises TimedOut if nobody came for one, if that is fatal; Unreachable if no node is left; TooLarge for one that
        does not fit in a frame; another RequestError for what a node refuses.
        """
        flight = self.flight
        self._answered_at = time.monotonic()  # whoever made the messages may have taken long
        for topic, value in messages:
            while not flight.has_room:
                self._turn(math.inf)
            flight.put(topic, value)
            if len(flight.output) >= FLUSH_AT:
                self._turn(0.0)
        if flight.output:
            self._turn(0.0)

    def finish(self) -> None:
        """Wait until every message has its outcome. Raises as send() does."""
        while self.flight:
            self._turn(math.inf)

    # One turn.

    def _turn(self, wait: float) -> None:
        """Write what there is to write, and take what comes within `wait` seconds, or sooner."""
        flight = self.flight
        if flight.is_left:  # only now: after the last answer no other node is needed
            self._replace("the node went away")
            return
        now = time.monotonic()
        if flight.is_refused and now >= self._try_again_at:
            flight.try_again()
            self._try_again_at = now + BUSY_PAUSE_S
        connection = self._connection
        assert connection is not None  # there is one within the `with` statement
        try:
            came, self._came = self._came, b""
            if came:
                self._take(came, may_probe=False)
            self._write(connection)
            data = connection.read(min(wait, BUSY_PAUSE_S if flight.is_refused else self._silence.wait(now)))
            self._take(data, may_probe=True)
        except (OSError, RemoteProtocolError) as error:
            self._replace(cause_of(error))
        if flight.missed and self._missed_is_fatal:
            raise self._nobody_came()
        if flight.answered != self._answered:
            self._answered, self._answered_at = flight.answered, now
            self._finder.works()
        elif flight and now > self._answered_at + 2 * self._timeout + STUCK_S:
            raise self._stuck(now - self._answered_at)

    def _write(self, connection: Connection) -> None:
        output = self.flight.output
        connection.write(b"".join(output))
        output.clear()
        # A node reads no more while its replies are not read.
        while connection.unsent:
            wait = self._silence.wait(time.monotonic())
            moves = wait_for(connection.fd, select.POLLIN | select.POLLOUT, wait)
            self._take(connection.read(0.0), may_probe=not moves)
            connection.write(b"".join(output))
            output.clear()

    def _take(self, data: bytes | None, may_probe: bool) -> None:
        """Take what was read, None if nothing was. Raises what says that the connection is of no more use."""
        flight = self.flight
        now = time.monotonic()
        if data is not None:
            self._silence.broken(now)
            flight.take(data)
        elif flight and may_probe and self._silence.wait(now) == 0:
            if self._silence.means_death:
                raise TimeoutError
            self._silence.pinged(now)
            flight.probe()

    # Connections.

    def _replace(self, cause: str) -> None:
        """Go on over another connection, if need be to another node."""
        self._drop()
        self._finder.lost(cause)
        # A node that restarts takes a while, and whoever receives comes back too.
        self._connect(max(self._timeout, CONNECT_TIMEOUT_S))
        self.flight.start_anew()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self, patience_s: float) -> None:
        self._connection = self._finder.find(patience_s)
        self._came = self._finder.rest
        self._silence.broken(time.monotonic())

    # What ends it all.

    def _nobody_came(self) -> TimedOut:
        flight = self.flight
        return TimedOut(
            f"nobody took {told(flight.missed)} within {self._timeout:g} s; of this partition {flight.handed_over:,} "
            f"rows were taken and {len(flight):,} more were on their way. Give receivers more time by timeoutMs, or go "
            "on without such rows by onTimeout=count or drop"
        )

    def _stuck(self, seconds: float) -> SkywalkerError:
        flight = self.flight
        where = f"the node at {self._finder.address}"
        if flight.is_refused and flight.busy is not None:
            return Busy(f"{where} has been too busy for {seconds:.0f} s: {flight.busy}; set maxInFlight lower")
        return Unreachable(f"{where} is there, and yet has answered none of {len(flight):,} rows for {seconds:.0f} s")


def told(missed: Mapping[bytes, int]) -> str:
    """Return how many rows nobody came for, and on which topics."""
    most = sorted(missed, key=lambda topic: -missed[topic])[:TOPICS_TOLD]
    topics = ", ".join(f"{shown(topic)} ({missed[topic]:,})" for topic in most)
    more = f" and {len(missed) - len(most):,} more topics" if len(missed) > len(most) else ""
    return f"{sum(missed.values()):,} rows, of {topics}{more}"
