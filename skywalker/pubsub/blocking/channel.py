"""A connection that is made again when it is lost, and the threads that wait for what comes over it.

One lock guards the exchange and is never held while waiting. Of the threads that wait one *leads*: it reads, and
dials, for all, until it has what it waits for; then it wakes another to lead. No thread is there but the callers'.
"""

from __future__ import annotations

import random
import select
import threading
import time
from collections.abc import Callable
from typing import Final

from skywalker import backoff
from skywalker.clients import process
from skywalker.clients.blocking.connection import Connection, wait_for
from skywalker.clients.blocking.dialer import DIAL_STEP_S, Dialer
from skywalker.clients.blocking.driver import SLACK_S
from skywalker.clients.blocking.leading import HELP_S
from skywalker.clients.blocking.tls_connection import connection
from skywalker.clients.homes import Homes
from skywalker.clients.news import News
from skywalker.clients.requests import MAX_TIMEOUT_S
from skywalker.clients.settings import Settings
from skywalker.dialling import cause_of
from skywalker.errors import Closed, SkywalkerError
from skywalker.pubsub.ask import Ask
from skywalker.pubsub.exchange import Exchange, Notice
from skywalker.pubsub.message import Message
from skywalker.pubsub.telling import Herald

IsOver = Callable[[], bool]
"""Whether a thread has what it waits for; asked while the lock is held."""

FOREVER: Final = float("inf")


class Pending(Ask):
    """A publish under way, as begin() returns it."""

    __slots__ = ("_channel",)

    def __init__(self, channel: Channel, code: int, topic: bytes, frame: bytes, timeout: float) -> None:
        super().__init__(code, topic, frame, timeout)
        self._channel = channel

    def done(self) -> bool:
        """Whether result() would return or raise at once."""
        if not self.ended:
            self._channel.wait(lambda: self.ended, 0.0)
        return self.ended

    def result(self) -> None:
        """Return once the node has acknowledged it. Raises TimedOut, Unreachable or Closed if it has not.

        An exception that interrupts the waiting, such as KeyboardInterrupt, gives it up: it may take effect, or not.
        """
        if not self.ended:
            self._channel.wait_until_ended(self)
        if self.error is not None:
            raise self.error


class Channel:
    """What one exchange goes over."""

    def __init__(self, settings: Settings, exchange: Exchange, herald: Herald) -> None:
        """`herald` tells in a thread that waits, which may use the channel."""
        self.exchange = exchange
        self.lock = threading.Lock()
        self.is_closed = False
        self._herald = herald
        self._news: list[News | Notice] = []
        self._homes = Homes()
        self._dialer = Dialer(settings, self._homes)
        self._connection: Connection | None = None
        self._leader: int | None = None  # the thread that reads and dials; only it closes the socket
        self._is_halfway = False  # the leader has read or written, and not yet said so
        self._sleepers: dict[threading.Lock, IsOver] = {}
        self._pid = process.pid()

    def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        exchange = self.exchange
        if not self.wait(lambda: exchange.is_connected or exchange.given_up, time.monotonic() + timeout):
            raise exchange.unreachable(self._dialer.cause)
        self.check_open()
        if exchange.given_up:
            raise exchange.unreachable()

    def ask(self, *asks: Ask) -> None:
        """Have the node asked. If interrupted, some may have been begun."""
        self.check_open()
        try:
            with self.lock:
                self.check_open()
                now = time.monotonic()
                for ask in asks:
                    self.exchange.begin(ask, now)
                self._act()
        except SkywalkerError:
            raise
        except BaseException:
            self._mistrust()
            raise

    def wait_for_room(self, ask: Ask) -> None:
        """Wait until the kernel has taken what was written, the connection is lost, or `ask` is over."""
        if self._is_clogged():
            self._wait_for(ask, lambda: ask.ended or not self._is_clogged())

    def message(self, timeout: float = FOREVER) -> Message:
        """Return the next message.

        Raises TimedOut, or Unreachable if there is no connection, once `timeout` seconds are over; Closed.
        """
        until = time.monotonic() + timeout
        while True:
            self.check_open()
            with self.lock:
                message = self.exchange.take()
            if message is not None:
                return message
            if not self.wait(lambda: self.exchange.waiting > 0, until):
                raise self.exchange.nothing_came(timeout)

    def wait_until_ended(self, ask: Ask) -> None:
        """Return once `ask` has ended; abandon it if interrupted."""
        self._wait_for(ask, lambda: ask.ended)

    def _wait_for(self, ask: Ask, is_over: IsOver) -> None:
        try:
            while not self.wait(is_over, ask.expires + SLACK_S):
                pass
        except BaseException:
            self.abandon(ask)
            raise

    def abandon(self, *asks: Ask) -> None:
        """End what has not ended, because nobody wants its outcome."""
        if self._pid == process.pid():
            with self.lock:
                now = time.monotonic()
                for ask in asks:
                    self.exchange.abandon(ask, now)
                self._act()

    def check_open(self) -> None:
        """Raise Closed if the channel was closed, or is another process's."""
        if self._pid != process.pid():
            raise Closed(f"the connection belongs to process {self._pid}: connect anew in this one")
        if self.is_closed:
            raise Closed("the client is closed")

    def close(self) -> None:
        """End all that was asked with Closed, and the waiting for the rest."""
        if self._pid != process.pid():
            self._close_socket()  # a copy, which says nothing to the node
            return
        with self.lock:
            self.is_closed = True
            self.exchange.close(Closed("the client was closed"))
            self._wake()
            if self._connection is not None:
                self._connection.shut()  # which wakes the leader
            if self._leader is None:
                self._close_socket()

    # Threads.

    def wait(self, is_over: IsOver, until: float) -> bool:
        """Wait until something is so, the time is `until`, or the channel is closed; return whether it is over.

        Reads at least once, unless another thread does. Raises Closed in a process that the channel does not belong to.
        """
        if self._pid != process.pid():
            self.check_open()
        try:
            while True:
                over = self._lead(is_over, until)
                self._tell_news()
                if over is None:
                    over = self._sleep(is_over, until)
                if over or time.monotonic() >= until:
                    return over
        finally:
            self._call_leader()  # this thread may have been called to lead, and now will not

    def _lead(self, is_over: IsOver, until: float) -> bool | None:
        """Read for everybody until it is over, the time is `until`, or there is news to tell.

        Returns whether it is over; None, having read nothing, if another thread leads.
        """
        me = threading.get_ident()
        try:
            with self.lock:
                if self.is_closed or is_over():
                    return True
                if self._leader is not None:
                    return None
                self._leader = me
            while True:
                data = self._read(until)
                with self.lock:
                    now = time.monotonic()
                    if data:
                        self.exchange.receive(data, now)
                    self.exchange.tick(now)
                    self._act()
                    self._is_halfway = False
                    over = self.is_closed or is_over()
                    if over or now >= until or self._news:
                        return over
        except BaseException:
            if self._leader == me and self._is_halfway:
                self._is_halfway = False
                self._mistrust()
            raise
        finally:
            if self._leader == me:
                with self.lock:
                    self._leader = None
                    if self.is_closed:
                        self._close_socket()
                self._call_leader()

    def _call_leader(self) -> None:
        """Wake another thread to lead, if none does."""
        with self.lock:
            if self._leader is None and self._sleepers:
                self._sleepers.popitem()[0].release()

    def _sleep(self, is_over: IsOver, until: float) -> bool:
        """Wait while another thread leads; return whether it is over. Help to write what the kernel had no room for."""
        sleeper = threading.Lock()
        sleeper.acquire()
        with self.lock:
            if self._leader is None or self.is_closed or is_over():
                return self.is_closed or is_over()
            clogged = self._connection if self._is_clogged() else None
            if clogged is None:
                self._sleepers[sleeper] = is_over
            wait = self._time_to_wait(until, time.monotonic())
        if clogged is not None:
            wait_for(clogged.fd, select.POLLOUT, min(HELP_S, wait))
        else:
            try:
                sleeper.acquire(timeout=wait)
            finally:
                with self.lock:
                    self._sleepers.pop(sleeper, None)
        with self.lock:
            self.exchange.tick(time.monotonic())
            self._act()
            return self.is_closed or is_over()

    def _wake(self) -> None:
        """Wake the threads that have what they wait for. The lock is held."""
        for sleeper, is_over in [*self._sleepers.items()]:
            if self.is_closed or is_over():
                del self._sleepers[sleeper]
                sleeper.release()

    def _tell_news(self) -> None:
        while self._news:
            with self.lock:
                news, self._news = self._news, []
            for each in news:
                if not self.is_closed:
                    self._herald.tell(each)

    # The connection.

    def _read(self, until: float) -> bytes:
        """Return what comes until then, or until something is due; dial if there is no connection."""
        with self.lock:
            now = time.monotonic()
            wait = self._time_to_wait(until, now)
        connection = self._connection
        if connection is None:
            self._dial(now + wait)
            return b""
        try:
            # A poll goes on with the time that is left after a signal, and an exception in it costs nothing.
            unsent = select.POLLOUT if connection.unsent else 0
            if not wait_for(connection.fd, select.POLLIN | unsent, wait):
                return b""
            self._is_halfway = True
            if unsent:
                with self.lock:
                    connection.write(b"")
            return connection.read(0.0) or b""
        except OSError as error:
            with self.lock:
                self._lose(cause_of(error))
            return b""

    def _time_to_wait(self, until: float, now: float) -> float:
        due = self.exchange.wait(now)
        return min(max(0.0, until - now), MAX_TIMEOUT_S if due is None else due)

    def _dial(self, until: float) -> None:
        try:
            opening = self._dialer.advance(min(until, time.monotonic() + DIAL_STEP_S))
        except OSError as error:
            with self.lock:
                self._without_connection(cause_of(error))
            return
        if opening is not None:
            with self.lock:
                self._connection = connection(opening)
                self._homes.settle()
                self.exchange.connected(str(self._dialer.address), time.monotonic())
                self._act()

    def _lose(self, cause: str) -> None:
        """Close the connection, and turn to another address first. The lock is held."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._homes.avoid(self._dialer.address)
            self._without_connection(self.exchange.hang_up or cause)

    def _without_connection(self, cause: str) -> None:
        exchange = self.exchange
        exchange.disconnected(cause, time.monotonic())
        self._dialer.pause(backoff.delay(exchange.failures - 1, random.random()))
        self._act()

    def _is_clogged(self) -> bool:
        return self._connection is not None and bool(self._connection.unsent)

    def _mistrust(self) -> None:
        """Give up the connection: an exception may have come halfway through a read or a write."""
        with self.lock:
            if self._connection is not None:
                self._connection.shut()

    def _close_socket(self) -> None:
        self._dialer.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _act(self) -> None:
        """Do what the exchange wants done, after every use of it. The lock is held."""
        exchange = self.exchange
        exchange.ended.clear()
        if exchange.news:
            self._news += exchange.news
            exchange.news.clear()
        connection = self._connection
        if connection is not None:
            if data := exchange.output():
                connection.write(data)
            if exchange.hang_up:
                if self._leader in (None, threading.get_ident()):
                    self._lose(exchange.hang_up)
                else:
                    connection.shut()
        if self._sleepers:
            self._wake()
