"""The connections of an asyncio client: tasks share them.

What tasks write in one turn of the event loop leaves in one system call for each connection; a
call that is alone, as the turn before showed, leaves at once. When the node does not keep up,
begin() and all that builds on it wait for room.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from skywalker import backoff
from skywalker.address import Address
from skywalker.clients import fork_check
from skywalker.clients.aio.driver import Driver, Pending
from skywalker.clients.call import Call, PubSubKind
from skywalker.clients.core import Dial, LineCore
from skywalker.clients.homes import Round
from skywalker.clients.news import Herald
from skywalker.clients.requests import Kind
from skywalker.clients.settings import Settings
from skywalker.clients.sockets import ATTEMPT_S, HASTY_S, direct_socket, numeric, tune
from skywalker.clients.stream import Stream
from skywalker.deadlines import PRECISION_S
from skywalker.dialling import cause_of, is_own_echo, server_name
from skywalker.errors import Closed, DiscoveryError
from skywalker.limits import KIB
from skywalker.tls.words import CLOSED, SILENT

if TYPE_CHECKING:
    import ssl


MAX_OUTPUT_BYTES: Final = 64 * KIB
"""Bytes gathered in one turn of the loop at most: a task that begins call after call never ends its turn."""

LINGER_S: Final = 1.0
"""Seconds that close() gives the last bytes to leave, and the event loop to close the sockets."""

C = TypeVar("C", bound=LineCore)


class Link(asyncio.Protocol):
    """One connection. There is `room` while the node keeps up."""

    transport: asyncio.Transport

    def __init__(self, owner: LineDriver[Any]) -> None:
        self._owner = owner
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_paused = False  # so that nothing is read
        self.room = asyncio.Event()
        self.room.set()

    def pause(self, is_paused: bool) -> None:
        """Read nothing for a while, or go on."""
        self.is_paused = is_paused
        if is_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._owner.received(self, data)

    def pause_writing(self) -> None:
        self.room.clear()
        self._owner.stalled(1)

    def resume_writing(self) -> None:
        self.room.set()
        self._owner.stalled(-1)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.room.is_set():
            self.resume_writing()
        if not self.lost.done():
            self.lost.set_result(None)
        self._owner.lost(self, cause_of(exc or ConnectionResetError("the node closed the connection")))


async def dial(
    loop: asyncio.AbstractEventLoop,
    owner: LineDriver[Any],
    address: Address,
    patience: float,
    tls: ssl.SSLContext | None,
) -> Link:
    """Return a new connection, by TLS with hands shaken.

    Raises OSError or UnicodeError, TimeoutError once `patience` seconds are over.
    """
    try:
        async with asyncio.timeout(patience):
            if address.is_unix:
                _, link = await loop.create_unix_connection(lambda: Link(owner), address.path)
            else:
                link = await _link_to(loop, owner, tls, address.host, host=address.host, port=address.port)
    except (TimeoutError, ConnectionResetError) as error:
        if tls is None:
            raise
        raise ConnectionError(SILENT if isinstance(error, TimeoutError) else CLOSED) from error
    sock: socket.socket = link.transport.get_extra_info("socket")
    if sock is None or link.lost.done():
        link.transport.abort()
        raise ConnectionResetError("the node closed the connection")
    if is_own_echo(sock):
        link.transport.abort()
        raise ConnectionRefusedError("connection refused")
    tune(sock)
    return link


async def dial_by(
    loop: asyncio.AbstractEventLoop,
    owner: LineDriver[Any],
    sock: socket.socket,
    form: Any,
    name: str,
    tls: ssl.SSLContext | None,
) -> Link:
    """Return a new connection of a socket, which never blocks, to where sockets call it `form`, on a host of this name.

    The socket is not the caller's any more: if there is no connection it is closed. Raises OSError.
    """
    try:
        await loop.sock_connect(sock, form)
        if is_own_echo(sock):
            raise ConnectionRefusedError("connection refused")
    except BaseException:
        sock.close()
        raise
    # From here on it is the transport's, which may use it for a while after the dial was given up.
    return await _link_to(loop, owner, tls, name, sock=sock)


async def _link_to(
    loop: asyncio.AbstractEventLoop, owner: LineDriver[Any], tls: ssl.SSLContext | None, name: str, **where: Any
) -> Link:
    """Return a connection to a host of this name, made as create_connection() is told. Raises as that does."""
    if tls is None:
        _, link = await loop.create_connection(lambda: Link(owner), **where)
        return link
    transport, link = await loop.create_connection(
        lambda: Link(owner),
        ssl=tls,
        server_hostname=server_name(name),
        ssl_shutdown_timeout=LINGER_S,
        **where,
    )
    transport.set_write_buffer_limits(MAX_OUTPUT_BYTES)  # as without TLS, and not eight times as much
    return link


class LineDriver(Driver, Generic[C]):
    """Runs the calls of one client, over the connections that it makes."""

    core: C

    def __init__(self, make_core: Callable[[], C], settings: Settings, herald: Herald) -> None:
        super().__init__(make_core())
        self._settings = settings
        self._herald = herald
        self._pid = fork_check.pid()
        # A task may be cancelled in the turn of the loop in which its value comes: then it goes back, if it may.
        self._unacknowledged: dict[Call, Any] = {}
        if settings.acks:
            self.core.unacknowledged = self._unacknowledged
        self._links: dict[Link, Stream] = {}
        self._link: Link | None = None  # the main one
        self._redialling: asyncio.Task[None] | None = None
        self.address: Address | None = None
        """Where the main one was made."""
        self._trying = Round(self.core.homes, self.machine.random)
        self._adding: dict[asyncio.Task[None], None] = {}  # direct ones
        self._flush_is_due = False
        self._begun = 0  # calls, in this turn of the loop
        self._is_eager = False  # whether a call need not wait for others of its turn

    @property
    def cause(self) -> str:
        """Why there is no connection so far, in the middle of dialling."""
        where = self._settings.where
        return self._trying.cause(where) if self._settings.tls is None else self._trying.cause(where, SILENT)

    async def open(self, deadline: float) -> None:
        """Make the first connection. Raises Unreachable if there is none by then."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._attempt()
                while self._link is None:
                    self.check_open()
                    if self.core.given_up:
                        raise self.core.unreachable()
                    await asyncio.sleep(backoff.delay(self.core.failures - 1, self.machine.random()))
                    await self._attempt()
        except TimeoutError:
            raise self.core.unreachable(self.cause) from None

    async def close(self) -> None:
        if self._pid != fork_check.pid():
            return  # the connection is the parent's, and so is the event loop
        dialling = [*self._adding, *([self._redialling] if self._redialling is not None else [])]
        for task in dialling:
            task.cancel()
        for call in [*self._unacknowledged]:
            self.core.acknowledge(call)
        self._flush()
        links, self._links, self._link = self._links, {}, None
        await super().close()
        for link in links:
            link.transport.close()
        if ending := [*(link.lost for link in links), *dialling]:
            await asyncio.wait(ending, timeout=LINGER_S)
        for link in links:
            if not link.lost.done():  # else asyncio of Python 3.11.2 has let go of what it would abort
                link.transport.abort()

    def check_open(self) -> None:
        super().check_open()
        if self._pid != fork_check.pid():
            raise Closed(f"the client belongs to process {self._pid}: connect anew in this one")

    def issue(self, kind: Kind | PubSubKind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        self._begun += 1
        call = super().issue(kind, arguments, timeout)
        if self._link is None:
            self._redial()
        line = call.line
        if line is not None and line.output_bytes > MAX_OUTPUT_BYTES:
            self._flush()
        return call

    async def wait_for_room(self, call: Pending) -> None:
        """Wait until the node has read some of what was written, the connection is lost, or the call is over."""
        link: Link | None = None if call.line is None else call.line.shell
        if link is None or link.room.is_set():
            return
        try:
            async with asyncio.timeout_at(call.expires + PRECISION_S):  # so that it has ended then
                await link.room.wait()
        except TimeoutError:
            return
        except BaseException:
            self.abandon(call)
            raise

    def _goes_on(self, call: Pending) -> None:
        if call in self._unacknowledged:
            self.core.acknowledge(call)
            if not self._unacknowledged:  # else it leaves with those of the others that this turn wakes
                self._flush()

    def abandon(self, call: Pending) -> None:
        if call in self._unacknowledged:
            self.core.abandon(call, self._loop.time())
            self._flush()
        else:
            super().abandon(call)

    def _act(self) -> None:
        if self._unacknowledged:
            for call in self.core.ended:
                if not call.waiters:
                    self.core.acknowledge(call)  # its handle has the value
        super()._act()
        core = self.core
        if core.news:
            for news in core.news:
                self._loop.call_soon(self._tell, news)
            core.news.clear()
        if core.due_at < self._timer_at:
            self._wake_by(core.due_at)
        touched = core.touched
        if touched and not self._flush_is_due:
            if self._is_eager and touched[0].waiting < 2:
                self._begun = 0
                self._flush()
            else:
                self._flush_is_due = True
                self._loop.call_soon(self._flush_turn)

    def _tell(self, news: Any) -> None:
        if not self.is_closed:
            self._herald.tell(news)

    def _flush_turn(self) -> None:
        """Write what this turn of the loop has brought; if it was one call, the next call need not wait for more."""
        self._flush_is_due = False
        self._is_eager = self._begun < 2
        self._begun = 0
        self._flush()

    def _flush(self) -> None:
        """Write what there is, and close what is to be closed."""
        touched = self.core.touched
        while touched:
            line = touched.pop()
            link: Link | None = line.shell
            if link is None:
                continue
            # What was not written yet leaves no call in doubt. Where no call is left, it says what became of some.
            if not (line.hang_up and line.waiting) and (data := line.output()):
                if link.transport.is_closing() and not link.transport.get_write_buffer_size():
                    line.unwritten += len(data)  # it would write nothing any more
                else:
                    link.transport.write(data)
                now = self._loop.time()
                if (wait := line.wait_for_probe(now)) is not None:
                    self._wake_by(now + wait)
            if line.hang_up:
                line.unwritten += link.transport.get_write_buffer_size()
                link.transport.abort()
                self.lost(link, line.hang_up)
                continue
            if line.is_full != link.is_paused:
                link.pause(line.is_full)

    # The connections.

    def received(self, link: Link, data: bytes) -> None:
        """The node wrote."""
        line = self._links.get(link)
        if line is not None:
            core, now = self.core, self._loop.time()
            core.receive(line, data, now)
            while core.news:  # as of a gap: before any task gets what came behind it
                self._tell(core.news.pop(0))
            self._act()
            if now >= core.dial_at:
                self._add_direct(now)

    def stalled(self, more: int) -> None:
        """The node on one connection does not keep up any more, or does again."""
        self._stalled += more

    def lost(self, link: Link, cause: str) -> None:
        """A connection is lost."""
        line = self._links.pop(link, None)
        if line is None:
            return
        line.shell = None
        now = self._loop.time()
        if link is self._link:
            self._link = None
            self.core.disconnected(cause, now)
            self._redial()
        else:
            self.core.lost(line, now)
        self._act()

    def _use(self, link: Link, line: Stream) -> None:
        line.shell = link
        self._links[link] = line
        wait = self.core.wait(self._loop.time())
        if wait is not None:
            self._wake_by(self._loop.time() + wait)

    def _redial(self) -> None:
        if self.core.busy and self._redialling is None:
            self._redialling = self._loop.create_task(self._dial_while_busy())

    async def _dial_while_busy(self) -> None:
        try:
            while self._link is None and self.core.busy:
                if self.core.failures:
                    await asyncio.sleep(backoff.delay(self.core.failures - 1, self.machine.random()))
                await self._attempt()
        finally:
            self._redialling = None

    async def _attempt(self) -> None:
        """Try every address that there is, until a node is reached."""
        round = self._trying = Round(self.core.homes, self.machine.random)
        while (address := await self._next_address(round)) is not None:
            try:
                patience = ATTEMPT_S if round.is_last else HASTY_S
                link = await dial(self._loop, self, address, patience, self._settings.tls)
            except (OSError, UnicodeError) as error:
                round.failed(address, cause_of(error))
                continue
            if self.is_closed:
                link.transport.abort()
                return
            self._link, self.address = link, address
            self.core.connected_to_node(self._loop.time(), address)
            self._use(link, self.core.main)
            break
        else:
            self.core.disconnected(round.cause(self._settings.where), self._loop.time())
        self._act()

    async def _next_address(self, round: Round) -> Address | None:
        address = round.next()
        if address is None and not round.is_complete:
            try:
                round.found(self._settings.addresses or await self._look())
            except DiscoveryError as error:
                round.trouble(str(error))
            address = round.next()
        return address

    async def _look(self) -> frozenset[Address]:
        """Ask the source, in a thread, since it blocks."""
        source = self._settings.source()
        try:
            return await asyncio.to_thread(source.addresses)
        finally:
            # Whoever was cancelled leaves no thread behind that waits, unless it looks at Consul: that cannot be ended,
            # and takes up to eight seconds more.
            source.close()

    # Direct ones.

    def _add_direct(self, now: float) -> None:
        while self._link is not None and (wanted := self.core.dial(now)) is not None:
            task = self._loop.create_task(self._dial_direct(self._link, wanted))
            self._adding[task] = None
            task.add_done_callback(self._adding.pop)

    async def _dial_direct(self, main: Link, wanted: Dial) -> None:
        core = self.core
        try:
            async with asyncio.timeout(ATTEMPT_S):
                beside: socket.socket = main.transport.get_extra_info("socket")
                address = wanted.address or self.address
                assert address is not None  # there is a main one
                peer = (beside.family, beside.getpeername())
                family, form = peer if wanted.address is None else numeric(wanted.address)
                sock = direct_socket(family, wanted, self.machine)
                link = await dial_by(self._loop, self, sock, form, address.host, self._settings.tls)
        except OSError:
            core.not_opened(wanted, self._loop.time())
        else:
            self._use(link, core.opened(wanted, self._loop.time()))
        self._act()
