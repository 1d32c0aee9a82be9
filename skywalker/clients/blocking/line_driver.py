"""The connections of a blocking client: threads share them, and no thread is there but the callers' own.

Of the threads that wait one leads, as `leading` has it: it reads, and dials when the connection is
lost. A call that nobody waits for moves on when somebody next uses the client. With one thread
and one connection, a call costs one send and one receive.
"""

from __future__ import annotations

import random
import select
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from skywalker import backoff
from skywalker.address import Address
from skywalker.clients import process
from skywalker.clients.blocking.connection import LineConnection, wait_for
from skywalker.clients.blocking.dialer import DIAL_STEP_S, Dialer
from skywalker.clients.blocking.directs import Directs
from skywalker.clients.blocking.driver import SLACK_S, Pending
from skywalker.clients.blocking.leading import Leading
from skywalker.clients.blocking.tls_connection import line_connection
from skywalker.clients.call import PubSubKind
from skywalker.clients.core import LineCore
from skywalker.clients.news import Teller
from skywalker.clients.order import BARRIER_S
from skywalker.clients.requests import Kind
from skywalker.clients.settings import Settings
from skywalker.dialling import cause_of
from skywalker.errors import SkywalkerError
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

C = TypeVar("C", bound=LineCore)


class LineDriver(Leading, Generic[C]):
    """Runs the calls of one client, over the connections that it makes."""

    core: C

    def __init__(self, make_core: Callable[[], C], settings: Settings, herald: Teller) -> None:
        self._make_core = make_core
        self._settings = settings
        self._herald = herald
        self._become_new()

    def _become_new(self) -> None:
        super().__init__(self._make_core())
        self._news = self.core.news
        self._pid = process.pid()
        self._dialer = Dialer(self._settings, self.core.homes)
        self._main: LineConnection | None = None
        self._directs = Directs(self._settings.tls)

    @property
    def address(self) -> Address | None:
        """Where the main connection was made, or is about to be."""
        return self._dialer.address

    @property
    def cause(self) -> str:
        """Why there is no connection so far, in the middle of dialling."""
        return self._dialer.cause

    def open(self, deadline: float) -> None:
        """Make the first connection. Raises Unreachable if there is none by then."""
        with self._lock:
            self.check_open()
            self._leader = threading.get_ident()
        try:
            while self._main is None:
                self._dial(deadline)
                self.check_open()
                if self._main is None and self.core.given_up:
                    raise self.core.unreachable()
                if self._main is None and time.monotonic() >= deadline:
                    raise self.core.unreachable(self._dialer.cause)
        finally:
            with self._lock:
                self._stop_leading()
        self._tell_news()

    def close(self) -> None:
        self._check_process()
        super().close()
        self._dialer.interrupt()
        with self._lock:
            self._shut_all()  # which wakes the leader
            if self._leader is None:
                self._close_sockets()

    def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        self._check_process()
        return super().cancel(call, timeout)

    def issue(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        self._check_process()
        try:
            return super().issue(kind, arguments, timeout)
        except SkywalkerError:
            raise
        except BaseException:
            self._mistrust()
            raise

    def wait_for_room(self, call: Pending) -> None:
        """Wait also for what lets a call go that was kept back."""
        if self._clogged and self._clogged_by(call) is not None:
            self.wait(call, until_written=True)
        elif call.line is None and self._leader is None and self.core.is_kept_back(call):
            self._have_it_issued(call)

    def _have_it_issued(self, call: Pending) -> None:
        """Read what lets a call go that was kept back, as nobody else does: begin() may not be followed by a wait."""
        try:
            self._lead(call, time.monotonic() + BARRIER_S, until_written=True)
        except BaseException:
            self.abandon(call)
            raise

    def _is_over(self, call: Pending, until_written: bool) -> bool:
        if not until_written:
            return call.ended
        if self._leader in (None, threading.get_ident()) and self.core.is_kept_back(call):
            return False  # another leader will see to it
        return super()._is_over(call, until_written)

    def _tell(self, news: Any) -> None:
        if not self.is_closed:
            self._herald.tell(news)

    # After a fork.

    def _check_process(self) -> None:
        """In the child of a fork, let go of all that is the parent's: its calls, its connection, its locks."""
        if process.pid() != self._pid:
            is_closed = self.is_closed
            self._close_sockets()  # copies, which says nothing to the node
            self._become_new()
            self.is_closed = is_closed

    # What the leader does.

    def _time_to_read(self, until: float, now: float) -> float:
        wait = max(0.0, until - now)
        core = self.core
        # What no caller waits for has deadlines of its own, and so has a direct line until it is joined.
        sooner = core.wait(now) if self._directs or core.due_at < now + wait else core.main.wait_for_probe(now)
        return wait if sooner is None or sooner > wait else sooner

    def _read(self, wait: float) -> list[tuple[LineConnection, bytes]]:
        main = self._main
        if main is None:
            # Not for long, if there are others to read from.
            self._dial(time.monotonic() + (min(wait, DIAL_STEP_S / 10) if self._directs else wait))
            wait = 0.0
        if self._directs:
            return self._read_any(wait)
        return [] if main is None else self._read_only(main, wait)

    def _take(self, read: list[tuple[LineConnection, bytes]], expires: float, now: float) -> None:
        core = self.core
        for connection, data in read:
            core.receive(connection.line, data, now)
        if not read or now >= expires or (self._directs and core.wait(now) == 0):
            core.tick(now)
        self._act()
        if now >= core.routes.dial_at:
            self._dial_direct(now)

    def _read_only(self, main: LineConnection, wait: float) -> list[tuple[LineConnection, bytes]]:
        """Return what comes over the only connection within `wait` seconds."""
        try:
            if main.unsent:
                wait_for(main.fd, select.POLLIN | select.POLLOUT, wait)
                wait = 0.0
                with self._lock:
                    self._write(main, b"")
            data = main.read(wait, SLACK_S)
        except OSError as error:
            with self._lock:
                self._lose(main, cause_of(error))
            return []
        return [] if data is None else [(main, data)]

    def _read_any(self, wait: float) -> list[tuple[LineConnection, bytes]]:
        """Return what comes over several connections within `wait` seconds, and take in what else happens."""
        turn = self._directs.wait(wait)
        if not turn.is_all_reading():
            with self._lock:
                for attempt in turn.opened:
                    self._directs.adopt(attempt, self.core.opened(attempt.wanted, time.monotonic()))
                for wanted in turn.failed:
                    self.core.not_opened(wanted, time.monotonic())
                if turn.failed:
                    self._directs.rest(self._main)
                for connection, error in turn.lost:
                    self._lose(connection, cause_of(error))
                self._act()
        return turn.read

    # The connections. Their sockets are closed by the leader, or when there is none.

    def _dial(self, until: float) -> None:
        try:
            opening = self._dialer.advance(min(until, time.monotonic() + DIAL_STEP_S))
        except OSError as error:
            with self._lock:
                self._without_main(cause_of(error))
            return
        if opening is not None:
            with self._lock:
                if self.core.is_connected:  # an exception came while that was being lost
                    self.core.disconnected("it was given up halfway", time.monotonic())
                self._main = line_connection(opening, self.core.main)
                self._directs.watch(self._main)
                self.core.connected_to_node(time.monotonic(), self._dialer.address)
                self._act()

    def _dial_direct(self, now: float) -> None:
        home = self._dialer.address
        while self._main is not None and home is not None and (wanted := self.core.dial(now)) is not None:
            try:
                self._directs.dial(self._main, home.host, wanted)
            except OSError:
                self.core.not_opened(wanted, now)

    def _without_main(self, cause: str) -> None:
        self.core.disconnected(cause, time.monotonic())
        self._dialer.pause(backoff.delay(self.core.failures - 1, random.random()))
        self._act()

    def _lose(self, connection: LineConnection, cause: str) -> None:
        """Close a connection, and issue its calls again."""
        if connection in self._clogged:
            self._clogged.remove(connection)
        if connection is self._main:
            self._directs.close_one(connection, None)
            self._main = None
            self._without_main(connection.line.hang_up or cause)
        else:
            self.core.lost(connection.line, time.monotonic())
            self._directs.close_one(connection, self._main)
            self._act()

    def _mistrust(self) -> None:
        with self._lock:
            self._shut_all()

    def _shut_all(self) -> None:
        if self._main is not None:
            self._main.shut()
        self._directs.shut_all()

    def _close_sockets(self) -> None:
        self._clogged.clear()
        self._dialer.close()
        self._directs.close()
        main, self._main = self._main, None
        if main is not None:
            main.close()

    def _act(self) -> None:
        self._wake_ended()
        if self._clogged:
            for connection in [*self._clogged]:
                self._write(connection, b"")
        touched = self.core.touched
        while touched:
            line = touched.pop()
            connection = line.shell
            if connection is None:
                continue
            if data := line.output():
                self._write(connection, data)
            if line.hang_up:
                if self._leader in (None, threading.get_ident()):
                    self._lose(connection, line.hang_up)
                else:
                    connection.shut()

    def _write(self, connection: LineConnection, data: bytes) -> None:
        connection.write(data)
        # Reading may leave something unsent too, so what was unsent before says nothing.
        is_clogged = connection in self._clogged
        if is_clogged and not connection.unsent:
            self._clogged.remove(connection)
            self._directs.watch(connection)
        elif connection.unsent and not is_clogged:
            self._clogged.append(connection)
            self._directs.watch(connection)
