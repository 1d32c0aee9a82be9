"""Threads that wait for calls over connections: one of them *leads*, and reads for all until its own call has ended.

Then it wakes another to lead. The others sleep, or help to write what the kernel had no room for.
With one thread there is nobody to wake, and a call takes the lock three times: to begin, to lead, and to end.
"""

from __future__ import annotations

import abc
import math
import select
import threading
import time
from typing import Any, Final

from skywalker.clients.blocking.connection import LineConnection, wait_for
from skywalker.clients.blocking.driver import SLACK_S, Driver, Pending
from skywalker.clients.core import LineCore
from skywalker.errors import Closed

HELP_S: Final = 0.05
"""Seconds that a thread waits for room to write in, before it looks for what else there is to do."""


class Leading(Driver):
    """A driver whose threads read for each other."""

    def __init__(self, core: LineCore) -> None:
        super().__init__(core)
        self._leader: int | None = None  # the thread that reads and dials; only it closes sockets
        self._clogged: list[LineConnection] = []  # those with something unsent
        self._news: list[Any] = []  # that no thread has told yet

    def wait(self, call: Pending, until: float = math.inf, until_written: bool = False) -> None:
        """Return once `call` has ended, the time is `until`, or nothing that was to be written is left."""
        self._check_process()
        led = False
        try:
            while not self._is_over(call, until_written) and time.monotonic() < until:
                led = self._lead(call, min(call.expires + SLACK_S, until), until_written)
                if self._news:
                    self._tell_news()
                if not led:
                    self._follow(call, until, until_written)
        except BaseException:
            self.abandon(call)
            raise
        finally:
            if not led:
                self._call_leader()  # this thread may have been called to lead, and now will not

    def _is_over(self, call: Pending, until_written: bool) -> bool:
        return call.ended or (until_written and self._clogged_by(call) is None)

    def poll(self, call: Pending) -> bool:
        self._check_process()
        if self.core.owns(call):
            self._lead(call, until=0.0)
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
                if not call.ended and not self.core.owns(call):
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
            self._tell(each)

    @abc.abstractmethod
    def _tell(self, news: Any) -> None:
        """Tell it."""

    # What connections are there, and what a leader does with them.

    @abc.abstractmethod
    def _check_process(self) -> None:
        """In the child of a fork, let go of all that is the parent's."""

    @abc.abstractmethod
    def _time_to_read(self, until: float, now: float) -> float:
        """Return the seconds to read for, up to `until`. The lock is held."""

    @abc.abstractmethod
    def _read(self, wait: float) -> list[tuple[LineConnection, bytes]]:
        """Return what comes over the connections within `wait` seconds."""

    @abc.abstractmethod
    def _take(self, read: list[tuple[LineConnection, bytes]], expires: float, now: float) -> None:
        """Take in what was read, or that nothing was; `expires` is when the leader's call does. The lock is held."""

    @abc.abstractmethod
    def _mistrust(self) -> None:
        """Give up the connections: an exception may have come halfway through a read or a write."""

    @abc.abstractmethod
    def _close_sockets(self) -> None:
        """Close what is open. The lock is held."""
