"""The connections of a blocking client: threads share them, and no thread is there but the callers' own.

Of the threads that wait one *leads*: it reads for all, and dials when the connection is lost, until its own call has
ended; then it wakes another to lead. The others sleep, or help to write what the kernel had no room for. A call that
nobody waits for moves on when somebody next uses the client. With one thread there is nobody to wake: a call takes the
lock three times, to begin, to lead and to end, and with one connection it costs one send and one receive; and one more
receive before the call if nobody has read for a moment, which finds out whether the connection is still there.
"""

from __future__ import annotations

import math
import random
import select
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from skywalker import backoff
from skywalker.address import Address
from skywalker.clients import fork_check
from skywalker.clients.blocking.connection import LineConnection, line_connection, wait_for
from skywalker.clients.blocking.dialer import DIAL_STEP_S, Dialer
from skywalker.clients.blocking.directs import Directs
from skywalker.clients.blocking.driver import SLACK_S, Driver, FirstOf, Pending
from skywalker.clients.call import PubSubKind
from skywalker.clients.calls import BARRIER_S
from skywalker.clients.core import LineCore
from skywalker.clients.news import Herald
from skywalker.clients.requests import Kind
from skywalker.clients.settings import Settings
from skywalker.dialling import cause_of
from skywalker.errors import Closed, SkywalkerError
from skywalker.limits import DEFAULT_CONTROL_TIMEOUT_S

HELP_S: Final = 0.05
"""Seconds that a thread waits for room to write in, before it looks for what else there is to do."""

UNREAD_S: Final = 0.001
"""Seconds without a read after which what has come is read before a call is written."""

MOST_READS: Final = 64
"""Reads before a call at most, of a node that writes faster than they read."""

C = TypeVar("C", bound=LineCore)


class LineDriver(Driver, Generic[C]):
    """Runs the calls of one client, over the connections that it makes."""

    core: C

    def __init__(self, make_core: Callable[[], C], settings: Settings, herald: Herald) -> None:
        self._make_core = make_core
        self._settings = settings
        self._herald = herald
        self._become_new()

    def _become_new(self) -> None:
        super().__init__(self._make_core())
        self._leader: int | None = None  # the thread that reads and dials; only it closes sockets
        self._clogged: list[LineConnection] = []  # those with something unsent
        self._news = self.core.news  # that no thread has told yet
        self._read_at = 0.0  # when what was there was last read
        self._reads = 0  # that gave something
        self._pid = fork_check.pid()
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
        if self._leader is None and time.monotonic() - self._read_at > UNREAD_S:
            self._catch_up()
        try:
            return super().issue(kind, arguments, timeout)
        except SkywalkerError:
            raise
        except BaseException:
            self._mistrust()
            raise

    def _catch_up(self) -> None:
        """Take in what came while nobody read: a call that is written to a connection which has ended is in doubt."""
        nothing = FirstOf(self, 0.0)
        for _ in range(MOST_READS):
            before = self._reads
            if self.is_closed or not (self._main or self._directs) or not self._lead(nothing, until=0.0):
                break
            if self._reads == before:
                break
        if self._news:
            self._tell_news()

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

    # Leading and following.

    def wait(self, call: Pending, until: float = math.inf, until_written: bool = False) -> None:
        """Return once `call` has ended, the time is `until`, or nothing that was to be written is left.

        What has come by now is read in any case, unless another thread does.
        """
        self._check_process()
        led = False
        try:
            while not self._is_over(call, until_written):
                led = self._lead(call, min(call.expires + SLACK_S, until), until_written)
                if self._news:
                    self._tell_news()
                if not led:
                    self._follow(call, until, until_written)
                if time.monotonic() >= until:
                    break
        except BaseException:
            self.abandon(call)
            raise
        finally:
            if not led:
                self._call_leader()  # this thread may have been called to lead, and now will not

    def _is_over(self, call: Pending, until_written: bool) -> bool:
        if call.ended or not until_written:
            return call.ended
        if self._leader in (None, threading.get_ident()) and self.core.is_kept_back(call):
            return False  # another leader will see to it
        return self._clogged_by(call) is None

    def poll(self, call: Pending) -> bool:
        self._check_process()
        if self.core.owns(call):
            if not self._lead(call, until=0.0):
                super().poll(call)  # another thread leads, who looks at the time when its own is over
            if self._news:
                self._tell_news()
        return call.ended

    def _lead(self, call: Pending, until: float, until_written: bool = False) -> bool:
        """Read for everybody until `call` has ended, the time is `until`, or there is news to tell, at least once.

        Returns False, having read nothing, if another thread leads or there is nothing to wait for any more.
        """
        me = threading.get_ident()
        try:
            with self._lock:
                if not (call.ended or self.core.owns(call) or isinstance(call, FirstOf)):
                    raise Closed("the call belongs to the process that began it")
                if self._leader is not None or self._is_over(call, until_written):
                    return False
                self._leader = me
                wait = self._time_to_read(until, time.monotonic())
            while True:
                read = self._read(wait)
                with self._lock:
                    now = time.monotonic()
                    self._take(read, call.expires, now)
                    if self._is_over(call, until_written) or now >= until or self._news:
                        self._stop_leading()
                        return True
                    wait = self._time_to_read(until, now)
        except BaseException:
            if self._leader == me and self._is_halfway():
                self._mistrust()
            raise
        finally:
            if self._leader == me:
                with self._lock:
                    self._stop_leading()

    def _is_halfway(self) -> bool:
        """Whether an exception that comes now may have come in the middle of a read or a write."""
        return True

    def _stop_leading(self) -> None:
        """Let another thread lead. The lock is held."""
        self._leader = None
        if self.is_closed:
            self._close_sockets()
        if self._sleepers:
            self._sleepers.popitem()[0].release()

    def _call_leader(self) -> None:
        """Wake another thread to lead, if none does."""
        with self._lock:
            if self._leader is None and self._sleepers:
                self._sleepers.popitem()[0].release()

    def _follow(self, call: Pending, until: float, until_written: bool) -> None:
        """Write, or sleep, while another thread leads."""
        if until_written or self._clogged_by(call) is not None:
            self._help_write(call)
        else:
            self._sleep(call, until)

    def _help_write(self, call: Pending) -> None:
        """Write while another thread reads."""
        with self._lock:
            connection = self._clogged_by(call)
            fd = None if connection is None else connection.fd
        if fd is not None:
            # Not for long: nobody wakes this thread if its call ends, or if it is to lead.
            wait_for(fd, select.POLLOUT, min(HELP_S, max(0.0, call.expires - time.monotonic()) + SLACK_S))
        with self._lock:
            self.core.tick(time.monotonic())
            self._act()

    def _clogged_by(self, call: Pending) -> LineConnection | None:
        """Return the connection that `call` goes over, if something is unsent there. Others are no concern of it."""
        connection = None if call.line is None else call.line.shell
        return connection if connection in self._clogged else None

    def _is_needed(self, call: Pending) -> bool:
        return self._leader is None or self._clogged_by(call) is not None

    def _tell_news(self) -> None:
        """Tell what is new; no lock is held, and this thread does not lead, so that others may call what they want."""
        with self._lock:
            news = [*self._news]
            self._news.clear()
        for each in news:
            if not self.is_closed:
                self._herald.tell(each)

    # After a fork.

    def _check_process(self) -> None:
        """In the child of a fork, let go of all that is the parent's: its calls, its connection, its locks."""
        if fork_check.pid() != self._pid:
            is_closed = self.is_closed
            self._close_sockets()  # copies, which says nothing to the node
            self._become_new()
            self.is_closed = is_closed

    # What the leader does.

    def _time_to_read(self, until: float, now: float) -> float:
        """Return the seconds to read for, up to `until`. The lock is held."""
        wait = max(0.0, until - now)
        core = self.core
        # What no caller waits for has deadlines of its own, and so has a direct line until it is joined.
        sooner = core.wait(now) if self._directs or core.due_at < now + wait else core.main.wait_for_probe(now)
        return wait if sooner is None or sooner > wait else sooner

    def _read(self, wait: float) -> list[tuple[LineConnection, bytes]]:
        """Return what comes over the connections within `wait` seconds."""
        main = self._main
        if main is None:
            # Not for long, if there are others to read from.
            self._dial(time.monotonic() + (min(wait, DIAL_STEP_S / 10) if self._directs else wait))
            wait = 0.0
        if self._directs:
            return self._read_any(wait)
        return [] if main is None else self._read_only(main, wait)

    def _take(self, read: list[tuple[LineConnection, bytes]], expires: float, now: float) -> None:
        """Take in what was read, or that nothing was; `expires` is when the leader's call does. The lock is held."""
        core = self.core
        self._read_at = now
        self._receive(read, now)
        if not read or now >= expires or (self._directs and core.wait(now) == 0):
            core.tick(now)
        self._act()
        if now >= core.dial_at:
            self._dial_direct(now)

    def _receive(self, read: list[tuple[LineConnection, bytes]], now: float) -> None:
        self._reads += len(read)
        for connection, data in read:
            self.core.receive(connection.line, data, now)

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
        if turn.is_all_reading():
            return turn.read
        with self._lock:
            self._receive(turn.read, time.monotonic())  # before any is lost, and others are closed with it
            for attempt in turn.opened:
                self._directs.adopt(attempt, self.core.opened(attempt.wanted, time.monotonic()))
            for wanted in turn.failed:
                self.core.not_opened(wanted, time.monotonic())
            if turn.failed:
                self._directs.rest(self._main)
            for connection, error in turn.lost:
                self._lose(connection, cause_of(error))
            self._act()
        return []

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
                # What comes at once is for the calls that are about to be made, as the question of connect(): it may
                # be a refusal, which ends those that are.
                self._read_at = time.monotonic()
                self.core.connected_to_node(self._read_at, self._dialer.address)
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
        connection.line.unwritten = connection.unwritten
        if connection is self._main:
            self._directs.close_one(connection, None)
            self._main = None
            self._without_main(connection.line.hang_up or cause)
        else:
            self.core.lost(connection.line, time.monotonic())
            self._directs.close_one(connection, self._main)
            self._act()

    def _mistrust(self) -> None:
        """Give up the connections: an exception may have come halfway through a read or a write."""
        with self._lock:
            self._shut_all()

    def _shut_all(self) -> None:
        if self._main is not None:
            self._main.shut()
        self._directs.shut_all()

    def _close_sockets(self) -> None:
        """Close what is open. The lock is held."""
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
