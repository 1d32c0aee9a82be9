"""The blocking client: threads share its connections, and no thread is there but the callers' own.

Of the threads that wait, one *leads*: it reads for all, and dials when the connection is lost,
until its own call has ended; then it wakes another to lead. A call that nobody waits for moves
on when somebody next uses the client. With one thread and one connection, a call costs one send and one receive.
"""

from __future__ import annotations

import os
import random
import select
import threading
import time
from typing import Any, Final

from skywalker.clients import backoff
from skywalker.clients.calls import Calls
from skywalker.clients.connection import Connection, wait_for
from skywalker.clients.dialer import Dialer, cause_of
from skywalker.clients.directs import Directs
from skywalker.clients.interface import Pending
from skywalker.clients.requests import Kind, milliseconds
from skywalker.clients.settings import CLOJURE_KEYWORD, CONNECT_TIMEOUT_S, Dialect, Settings
from skywalker.clients.threads import SLACK_S, ThreadedJunction
from skywalker.errors import Closed, SkywalkerError, TimedOut, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, DEFAULT_CONTROL_TIMEOUT_S, MAX_FRAME

DIAL_STEP_S: Final = 0.1
"""Seconds for which a thread that dials is deaf to close()."""


def connect(
    address: str = DEFAULT_ADDRESS,
    *,
    dialect: Dialect = "current",
    timeout_value: Any = CLOJURE_KEYWORD,
    name: str | None = None,
    ack: bool = False,
    token: str | bytes | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    max_frame: int = MAX_FRAME,
    direct: bool = True,
) -> Client:
    """Connect to the node at `address`, "host:port", and return a client that threads may share.

    With `ack` the sender of a value hears True only when this client has it. `name` and `token`
    are told to the node. With dialect "first", `timeout_value` names a timed-out call on the wire.
    Frames over `max_frame` bytes are refused. Raises Unreachable if no node answers within
    `connect_timeout` seconds, LocalProtocolError for an argument that is not allowed.
    """
    settings = Settings.of(
        address,
        dialect=dialect,
        timeout_value=timeout_value,
        name=name,
        ack=ack,
        token=token,
        max_frame=max_frame,
        direct=direct,
    )
    milliseconds(connect_timeout)
    client = Client(settings)
    try:
        client.open(connect_timeout)
    except BaseException:
        client.close()
        raise
    return client


class Client(ThreadedJunction):
    """A client of one node. Made by connect()."""

    _core: Calls

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._become_new()

    def _become_new(self) -> None:
        super().__init__(Calls(self._settings))
        self._pid = os.getpid()
        self._dialer = Dialer(self._settings.address)
        self._main: Connection | None = None
        self._directs = Directs()
        self._clogged: list[Connection] = []  # those with something unsent
        self._leader: int | None = None  # the thread that reads and dials; only it closes sockets

    def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            self._dial(deadline)
            if self._main is not None:
                break
            if time.monotonic() >= deadline:
                raise self._core.unreachable()
        if self._settings.hello is not None:
            try:
                self.ping(max(0.0, deadline - time.monotonic()))
            except TimedOut:
                raise Unreachable(f"the node at {self._settings.address} does not answer :hello") from None

    def close(self) -> None:
        self._check_process()
        super().close()
        with self._lock:
            self._shut_all()  # which wakes the leader
            if self._leader is None:
                self._close_sockets()

    def cancel(self, call: Pending, timeout: float = DEFAULT_CONTROL_TIMEOUT_S) -> bool:
        self._check_process()
        return super().cancel(call, timeout)

    def _begin(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        self._check_process()
        try:
            call = super()._begin(kind, arguments, timeout)
        except SkywalkerError:
            raise
        except BaseException:
            self._mistrust()
            raise
        if self._clogged:
            self._wait(call, until_written=True)
        return call

    # After a fork.

    def _check_process(self) -> None:
        """In the child of a fork, let go of all that is the parent's: its calls, its connection, its locks."""
        if os.getpid() != self._pid:
            closed = self._closed
            self._close_sockets()  # copies, which says nothing to the node
            self._become_new()
            self._closed = closed

    # Waiting.

    def _wait(self, call: Pending, until_written: bool = False) -> None:
        """Return once `call` has ended, or nothing that was to be written is left."""
        self._check_process()
        me = threading.get_ident()
        try:
            while not (call.ended or (until_written and not self._clogged)):
                with self._lock:
                    if not call.ended and not self._core.owns(call):
                        raise Closed("the call belongs to the process that began it")
                    if self._leader is None:
                        self._leader = me
                if self._leader == me:
                    self._lead(call, call.expires + SLACK_S, until_written)
                elif self._clogged:
                    self._help_write(call)
                else:
                    self._sleep(call)
        except BaseException:
            if self._leader == me:
                self._mistrust()
            self._abandon(call)
            raise
        finally:
            self._stop_leading(me)

    def _mistrust(self) -> None:
        """Give up the connections: the exception may have come halfway through a read or a write."""
        with self._lock:
            self._shut_all()

    def _poll(self, call: Pending) -> bool:
        self._check_process()
        me = threading.get_ident()
        with self._lock:
            if self._leader is None:
                self._leader = me
        try:
            if self._leader == me:
                self._lead(call, until=0.0)
        finally:
            self._stop_leading(me)
        return call.ended

    def _stop_leading(self, me: int) -> None:
        """Let another thread lead, if this one did, or was woken to and could not."""
        with self._lock:
            if self._leader == me:
                self._leader = None
                if self._closed:
                    self._close_sockets()
            if self._leader is None and self._sleepers:
                self._sleepers.popitem()[0].release()

    def _lead(self, call: Pending, until: float, until_written: bool = False) -> None:
        """Read for everybody until `call` has ended or the time is `until`, at least once."""
        core = self._core
        read: list[tuple[Connection, bytes]] = []
        turns = 0
        while True:
            with self._lock:
                now = time.monotonic()
                for connection, data in read:
                    core.receive(connection.line, data, now)
                if read:
                    self._act()
                if not read or now >= call.expires or (self._directs and core.wait(now) == 0):
                    core.tick(now)
                    self._act()
                if now >= core.routes.dial_at:
                    self._dial_direct(now)
                main = self._main
                if call.ended or (until_written and not self._clogged) or (turns and now >= until):
                    return
                wait = max(0.0, until - now)
                # Direct lines have deadlines of their own until they are joined.
                sooner = core.wait(now) if self._directs else core.wait_for_probe(now)
                if sooner is not None and sooner < wait:
                    wait = sooner
            turns += 1
            if main is None:
                # Not for long, if there are others to read from.
                self._dial(now + (min(wait, DIAL_STEP_S / 10) if self._directs else wait))
            if self._directs:
                read = self._read_any(0.0 if main is None else wait)
            else:
                read = [] if main is None else self._read(main, wait)

    def _read(self, main: Connection, wait: float) -> list[tuple[Connection, bytes]]:
        """Return what comes over the only connection within `wait` seconds."""
        try:
            if main.unsent:
                wait_for(main.fd, select.POLLIN | select.POLLOUT, wait)
                wait = 0.0
                with self._lock:
                    self._act()
            data = main.read(wait, SLACK_S)
        except OSError as error:
            with self._lock:
                self._lose(main, cause_of(error))
            return []
        return [] if data is None else [(main, data)]

    def _read_any(self, wait: float) -> list[tuple[Connection, bytes]]:
        """Return what comes over several connections within `wait` seconds, and take in what else happens."""
        turn = self._directs.wait(wait)
        if not turn.is_all_reading():
            with self._lock:
                if turn.opened:
                    self._directs.adopt(self._core.opened(time.monotonic()))
                if turn.failed:
                    self._core.not_opened(time.monotonic())
                    self._directs.rest(self._main)
                for connection, error in turn.lost:
                    self._lose(connection, cause_of(error))
                self._act()
        return turn.read

    def _help_write(self, call: Pending) -> None:
        """Write while another thread reads."""
        with self._lock:
            fds = [connection.fd for connection in self._clogged]
        if fds:
            wait_for(fds[0], select.POLLOUT, max(0.0, call.expires - time.monotonic()) + SLACK_S)
        with self._lock:
            self._core.tick(time.monotonic())
            self._act()

    # The connections. Their sockets are closed by the leader, or when there is none.

    def _dial(self, until: float) -> None:
        try:
            sock = self._dialer.advance(min(until, time.monotonic() + DIAL_STEP_S))
        except OSError as error:
            with self._lock:
                self._without_main(cause_of(error))
            return
        if sock is not None:
            with self._lock:
                self._main = Connection(sock, self._core.main)
                self._directs.watch(self._main)
                self._core.connected_to_node(time.monotonic())
                self._act()

    def _dial_direct(self, now: float) -> None:
        wanted = self._core.dial(now) if self._main is not None else None
        if wanted is not None and self._main is not None:
            try:
                self._directs.dial(self._main, wanted)
            except OSError:
                self._core.not_opened(now)

    def _without_main(self, cause: str) -> None:
        self._core.disconnected(cause, time.monotonic())
        self._dialer.pause(backoff.delay(self._core.failures - 1, random.random()))
        self._act()

    def _lose(self, connection: Connection, cause: str) -> None:
        """Close a connection, and issue its calls again."""
        if connection in self._clogged:
            self._clogged.remove(connection)
        if connection is self._main:
            self._directs.close_one(connection, None)
            self._main = None
            self._without_main(connection.line.hang_up or cause)
        else:
            self._core.lost(connection.line, time.monotonic())
            self._directs.close_one(connection, self._main)
            self._act()

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
        super()._act()
        for connection in self._clogged[:]:
            self._write(connection, b"")
        touched = self._core.touched
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

    def _write(self, connection: Connection, data: bytes) -> None:
        was_clogged = bool(connection.unsent)
        connection.write(data)
        if was_clogged != bool(connection.unsent):
            (self._clogged.remove if was_clogged else self._clogged.append)(connection)
            self._directs.watch(connection)
