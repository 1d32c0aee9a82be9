"""The blocking client: threads share its connections, and no thread is there but the callers' own.

Of the threads that wait one leads, as `leading` has it: it reads, and dials when the connection is
lost. A call that nobody waits for moves on when somebody next uses the client. With one thread
and one connection, a call costs one send and one receive.
"""

from __future__ import annotations

import contextlib
import random
import select
import threading
import time
from typing import TYPE_CHECKING, Any

from skywalker import backoff
from skywalker.clients import process
from skywalker.clients.calls import Calls
from skywalker.clients.connection import LineConnection, wait_for
from skywalker.clients.dialer import DIAL_STEP_S, Dialer
from skywalker.clients.directs import Directs
from skywalker.clients.interface import Pending
from skywalker.clients.leading import LedJunction
from skywalker.clients.news import Herald, News, OnConnect, OnDisconnect
from skywalker.clients.order import BARRIER_S
from skywalker.clients.requests import Kind
from skywalker.clients.settings import CLOJURE_KEYWORD, CONNECT_TIMEOUT_S, MEET_S, Dialect, Settings, check_patience
from skywalker.clients.threads import SLACK_S
from skywalker.clients.tls_connection import line_connection
from skywalker.clients.wrong_door import ANSWER_S, SILENT, what_is_at
from skywalker.dialling import cause_of
from skywalker.errors import RequestError, SkywalkerError, TimedOut, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, DEFAULT_CONTROL_TIMEOUT_S, MAX_FRAME

if TYPE_CHECKING:
    import ssl


def connect(
    where: str = DEFAULT_ADDRESS,
    *,
    dialect: Dialect = "current",
    timeout_value: Any = CLOJURE_KEYWORD,
    name: str | None = None,
    ack: bool = False,
    token: str | bytes | None = None,
    tls: ssl.SSLContext | bool | None = None,
    connect_timeout: float = CONNECT_TIMEOUT_S,
    max_frame: int = MAX_FRAME,
    direct: bool = True,
    on_connect: OnConnect | None = None,
    on_disconnect: OnDisconnect | None = None,
    timeout: None = None,
) -> Client:
    """Connect to a node, or to a cluster, and return a client that threads may share.

    `where` is "host:port" or "unix:///path", or for a cluster "host:port,host:port", "silk://host:3444,host:3444",
    "dns://name:3443", "dns://_service._tcp.name" or "consul://host:8500/service". "skywalkers://host:port,host:port"
    is spoken with by TLS, and so is any other but unix:// if `tls` is True or a context, such as
    skywalker.tls.contexts.client_context() returns; True, and what skywalkers:// means by itself, is that of the
    authorities that this machine trusts. A node's certificate must have the host that is dialled, often a numeric one.

    With `ack` the sender of a value hears True only when this client has it. `name` and `token`, a secret,
    are told to the node. With dialect "first", `timeout_value` names a timed-out call on the wire.
    Frames over `max_frame` bytes are refused. `on_connect` is called with the address whenever there is a connection,
    and `on_disconnect` with the address and the cause when it is lost. Raises Unreachable if no node answers within
    `connect_timeout` seconds, LocalProtocolError for an argument that is not allowed,
    DiscoveryError if a library is missing that asks what `where` names.
    """
    settings = Settings.of(
        where,
        dialect=dialect,
        timeout_value=timeout_value,
        name=name,
        ack=ack,
        token=token,
        tls=tls,
        max_frame=max_frame,
        direct=direct,
    )
    check_patience(connect_timeout, timeout)
    client = Client(settings, Herald(on_connect, on_disconnect))
    try:
        client.open(connect_timeout)
    except BaseException:
        client.close()
        raise
    return client


class Client(LedJunction):
    """A client of a node or a cluster. Made by connect()."""

    _core: Calls

    def __init__(self, settings: Settings, herald: Herald) -> None:
        self._settings = settings
        self._herald = herald
        self._become_new()

    def __repr__(self) -> str:
        state = "closed" if self._closed else self._core.state
        return f"<skywalker.Client of {self._settings.where}, {state}>"

    def _become_new(self) -> None:
        super().__init__(Calls(self._settings))
        self._news = self._core.news
        self._pid = process.pid()
        self._dialer = Dialer(self._settings, self._core.homes)
        self._main: LineConnection | None = None
        self._directs = Directs(self._settings.tls)

    def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            self._dial(deadline)
            if self._main is not None:
                break
            if self._core.given_up:
                raise self._core.unreachable()
            if time.monotonic() >= deadline:
                raise self._core.unreachable(self._dialer.cause)
        self._tell_news()
        if self._settings.is_plain:
            self._see_that_it_is_a_node(deadline)
        elif self._settings.hello is not None:
            try:
                self.ping(max(0.0, deadline - time.monotonic()))
            except TimedOut:
                raise Unreachable(f"the node at {self._dialer.address} does not answer :hello") from None

    def _see_that_it_is_a_node(self, deadline: float) -> None:
        question = self._begin("tokens", (), max(0.0, deadline - time.monotonic()))  # which original nodes know, too
        while not self._core.has_answered(question):
            self._wait(question, min(time.monotonic() + ANSWER_S, deadline))
            if self._core.has_answered(question):
                return
            address = self._dialer.address
            what = "" if address is None else what_is_at(address, self._settings.tls)
            is_late = time.monotonic() >= deadline
            if what and (is_late or what != SILENT):
                self._abandon(question)
                raise Unreachable(f"no node at {self._settings.where}: {what}")
            if is_late:
                self._abandon(question)
                raise self._core.unreachable(self._dialer.cause)

    def close(self, drain: float = 0.0) -> None:
        self._check_process()
        super().close(drain)
        self._dialer.interrupt()
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
        if self._clogged and self._clogged_by(call) is not None:
            self._wait(call, until_written=True)
        elif call.line is None and self._leader is None and self._core.is_kept_back(call):
            self._have_it_issued(call)
        return call

    def _have_it_issued(self, call: Pending) -> None:
        """Read what lets a call go that was kept back, as nobody else does: begin() may not be followed by a wait."""
        try:
            self._lead(call, time.monotonic() + BARRIER_S, until_written=True)
        except BaseException:
            self._abandon(call)
            raise

    def _is_over(self, call: Pending, until_written: bool) -> bool:
        if until_written and self._leader in (None, threading.get_ident()) and self._core.is_kept_back(call):
            return False  # another leader will see to it
        return super()._is_over(call, until_written)

    def _meet_node(self) -> None:
        if not self._settings.timeout_value and self._core.main.greeting is None:
            with contextlib.suppress(TimedOut, Unreachable, RequestError):
                self.hello(MEET_S)

    def _tell(self, news: News) -> None:
        if not self._closed:
            self._herald.tell(news)

    # After a fork.

    def _check_process(self) -> None:
        """In the child of a fork, let go of all that is the parent's: its calls, its connection, its locks."""
        if process.pid() != self._pid:
            closed = self._closed
            self._close_sockets()  # copies, which says nothing to the node
            self._become_new()
            self._closed = closed

    # What the leader does.

    def _time_to_read(self, until: float, now: float) -> float:
        wait = max(0.0, until - now)
        core = self._core
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
        core = self._core
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
                    self._directs.adopt(attempt, self._core.opened(attempt.wanted, time.monotonic()))
                for wanted in turn.failed:
                    self._core.not_opened(wanted, time.monotonic())
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
                self._main = line_connection(opening, self._core.main)
                self._directs.watch(self._main)
                self._core.connected_to_node(time.monotonic(), self._dialer.address)
                self._act()

    def _dial_direct(self, now: float) -> None:
        home = self._dialer.address
        while self._main is not None and home is not None and (wanted := self._core.dial(now)) is not None:
            try:
                self._directs.dial(self._main, home.host, wanted)
            except OSError:
                self._core.not_opened(wanted, now)

    def _without_main(self, cause: str) -> None:
        self._core.disconnected(cause, time.monotonic())
        self._dialer.pause(backoff.delay(self._core.failures - 1, random.random()))
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
            self._core.lost(connection.line, time.monotonic())
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
