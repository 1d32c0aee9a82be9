"""The blocking client: threads share one connection, and no thread is there but the callers' own.

Of the threads that wait, one *leads*: it reads for all, and dials when the connection is lost,
until its own call has ended; then it wakes another to lead. A call that nobody waits for moves
on when somebody next uses the client. With one thread, a call costs one send and one receive.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import struct
import threading
import time
from typing import Any, Final

from skywalker.clients import backoff
from skywalker.clients.calls import Calls
from skywalker.clients.dialer import Dialer, cause_of
from skywalker.clients.interface import Pending
from skywalker.clients.requests import Kind, milliseconds
from skywalker.clients.settings import CLOJURE_KEYWORD, CONNECT_TIMEOUT_S, Dialect, Settings
from skywalker.clients.threads import SLACK_S, ThreadedJunction
from skywalker.errors import Closed, SkywalkerError, TimedOut, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, DEFAULT_CONTROL_TIMEOUT_S, KIB, MAX_FRAME

READ_BYTES: Final = 64 * KIB

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
) -> Client:
    """Connect to the node at `address`, "host:port", and return a client that threads may share.

    With `ack` the sender of a value hears True only when this client has it. `name` and `token`
    are told to the node. With dialect "first", `timeout_value` names a timed-out call on the wire.
    Frames over `max_frame` bytes are refused. Raises Unreachable if no node answers within
    `connect_timeout` seconds, LocalProtocolError for an argument that is not allowed.
    """
    settings = Settings.of(
        address, dialect=dialect, timeout_value=timeout_value, name=name, ack=ack, token=token, max_frame=max_frame
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
        self._socket: socket.socket | None = None
        self._receive_timeout = 0.0  # seconds, as the socket has it
        self._unsent = b""  # what the kernel had no room for
        self._leader: int | None = None  # the thread that reads and dials; only it closes the socket

    def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            self._dial(deadline)
            if self._socket is not None:
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
            if self._socket is not None:
                _shut(self._socket)  # which wakes the leader
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
        if self._unsent:
            self._wait(call, until_written=True)
        return call

    # After a fork.

    def _check_process(self) -> None:
        """In the child of a fork, let go of all that is the parent's: its calls, its connection, its locks."""
        if os.getpid() != self._pid:
            closed, dialer, sock = self._closed, self._dialer, self._socket
            self._become_new()
            self._closed = closed
            # Closing a copy says nothing to the node.
            dialer.close()
            if sock is not None:
                sock.close()

    # Waiting.

    def _wait(self, call: Pending, until_written: bool = False) -> None:
        """Return once `call` has ended, or nothing that was to be written is left."""
        self._check_process()
        me = threading.get_ident()
        try:
            while not (call.ended or (until_written and not self._unsent)):
                with self._lock:
                    if not call.ended and not self._core.owns(call):
                        raise Closed("the call belongs to the process that began it")
                    if self._leader is None:
                        self._leader = me
                if self._leader == me:
                    self._lead(call, call.expires + SLACK_S, until_written)
                elif self._unsent:
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
        """Give up the connection: the exception may have come halfway through a read or a write."""
        with self._lock:
            if self._socket is not None:
                _shut(self._socket)

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
        data: bytes | None = b""  # what was read, None if nothing came in time
        turns = 0
        while True:
            with self._lock:
                now = time.monotonic()
                if data:
                    self._core.receive(data, now)
                    self._act()
                if data is None or now >= call.expires:
                    self._core.tick(now)
                    self._act()
                sock, unsent = self._socket, self._unsent
                if call.ended or (until_written and not unsent) or (turns and now >= until):
                    return
                wait = max(0.0, until - now)
                probe = self._core.wait_for_probe(now)
                if probe is not None and probe < wait:
                    wait = probe
            turns += 1
            if sock is None:
                self._dial(now + wait)
                data = None
                continue
            try:
                data = self._write_or_read(sock, wait) if unsent else self._read(sock, wait)
            except OSError as error:
                data = None
                with self._lock:
                    self._lose(cause_of(error))

    def _read(self, sock: socket.socket, wait: float) -> bytes | None:
        """Return what comes within `wait` seconds, None if nothing does. Raises OSError at the end of the stream."""
        flags = 0
        if wait <= 0:
            flags = socket.MSG_DONTWAIT
        elif not wait / 2 < self._receive_timeout <= wait + SLACK_S:
            # The kernel keeps the time, so that a receive is one system call; it is told only what is new to it.
            self._receive_timeout = max(wait, 0.001)  # 0 would mean for ever
            seconds, fraction = divmod(self._receive_timeout, 1)
            timeval = struct.pack("@ll", int(seconds), int(fraction * 1e6))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)
        try:
            data = sock.recv(READ_BYTES, flags)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionResetError("the node closed the connection")
        return data

    def _write_or_read(self, sock: socket.socket, wait: float) -> bytes | None:
        if not _ready(sock.fileno(), select.POLLIN | select.POLLOUT, wait):
            return None
        with self._lock:
            self._act()
        return self._read(sock, 0.0)

    def _help_write(self, call: Pending) -> None:
        """Write while another thread reads."""
        with self._lock:
            fd = self._socket.fileno() if self._socket is not None else -1
        if fd >= 0:
            _ready(fd, select.POLLOUT, max(0.0, call.expires - time.monotonic()) + SLACK_S)
        with self._lock:
            self._core.tick(time.monotonic())
            self._act()

    # The connection. Its socket is closed by the leader, or when there is none.

    def _dial(self, until: float) -> None:
        try:
            sock = self._dialer.advance(min(until, time.monotonic() + DIAL_STEP_S))
        except OSError as error:
            with self._lock:
                self._lose(cause_of(error))
            return
        if sock is not None:
            with self._lock:
                self._socket = sock
                self._receive_timeout = 0.0
                self._core.connected_to_node(time.monotonic())
                self._act()

    def _lose(self, cause: str) -> None:
        self._close_sockets()
        self._core.disconnected(self._core.hang_up or cause)
        self._dialer.pause(backoff.delay(self._core.failures - 1, random.random()))
        self._act()

    def _close_sockets(self) -> None:
        self._unsent = b""
        self._dialer.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _act(self) -> None:
        super()._act()
        core = self._core
        data = core.output()
        if self._socket is not None and (data or self._unsent):
            self._write(self._socket, self._unsent + data if self._unsent else data)
        if core.hang_up and self._socket is not None:
            if self._leader in (None, threading.get_ident()):
                self._lose(core.hang_up)
            else:
                _shut(self._socket)

    def _write(self, sock: socket.socket, data: bytes) -> None:
        """Write as much as the kernel takes at once, and keep the rest."""
        try:
            sent = sock.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError:
            # Whoever leads finds the end of the stream, and after it the calls are issued again.
            _shut(sock)
            sent = len(data)
        self._unsent = data[sent:]


def _ready(fd: int, events: int, wait: float) -> bool:
    poller = select.poll()
    poller.register(fd, events)
    return bool(poller.poll(wait * 1000))


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side may have been quicker
        sock.shutdown(socket.SHUT_RDWR)
