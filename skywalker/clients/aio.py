"""The asyncio client: tasks share its connections.

What tasks write in one turn of the event loop leaves in one system call for each connection; a
call that is alone, as the turn before showed, leaves at once. When the node does not keep up,
begin() and all that builds on it wait for room.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from typing import TYPE_CHECKING, Any

from skywalker import backoff
from skywalker.address import Address
from skywalker.clients import process
from skywalker.clients.aio_interface import Pending
from skywalker.clients.aio_link import LINGER_S, MAX_OUTPUT_BYTES, Link, cause_so_far, dial, dial_by
from skywalker.clients.calls import Calls
from skywalker.clients.dialer import ATTEMPT_S, HASTY_S, direct_socket, numeric
from skywalker.clients.homes import Round
from skywalker.clients.line import Line
from skywalker.clients.news import Herald, News, OnConnect, OnDisconnect
from skywalker.clients.requests import Kind, milliseconds
from skywalker.clients.settings import CLOJURE_KEYWORD, CONNECT_TIMEOUT_S, MEET_S, Dialect, Settings, check_patience
from skywalker.clients.tasks import TaskJunction
from skywalker.clients.way import Dial
from skywalker.clients.wrong_door import ANSWER_S, SILENT, what_is_at
from skywalker.dialling import cause_of
from skywalker.errors import Closed, DiscoveryError, RequestError, TimedOut, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, MAX_FRAME

if TYPE_CHECKING:
    import ssl


async def connect(
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
    """Connect to a node, or to a cluster, and return a client for tasks of the running event loop.

    Arguments and errors are those of skywalker.connect().
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
        await client.open(connect_timeout)
    except BaseException:
        await client.close()
        raise
    return client


class Client(TaskJunction):
    """A client of a node or a cluster. Made by connect()."""

    _core: Calls

    def __init__(self, settings: Settings, herald: Herald) -> None:
        super().__init__(Calls(settings))
        self._settings = settings
        self._herald = herald
        self._pid = process.pid()
        self._links: dict[Link, Line] = {}
        self._link: Link | None = None  # the main one
        self._redialling: asyncio.Task[None] | None = None
        self._address: Address | None = None  # where the main one was made
        self._trying = Round(self._core.homes, random.random)
        self._adding: set[asyncio.Task[None]] = set()  # direct ones
        self._flush_is_due = False
        self._begun = 0  # calls, in this turn of the loop
        self._is_eager = False  # whether a call need not wait for others of its turn

    def __repr__(self) -> str:
        state = "closed" if self._closed else self._core.state
        return f"<skywalker.aio.Client of {self._settings.where}, {state}>"

    async def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        deadline = self._loop.time() + timeout
        try:
            async with asyncio.timeout_at(deadline):
                await self._attempt()
                while self._link is None:
                    if self._core.given_up:
                        raise self._core.unreachable()
                    await asyncio.sleep(backoff.delay(self._core.failures - 1, random.random()))
                    await self._attempt()
        except TimeoutError:
            raise self._core.unreachable(cause_so_far(self._trying, self._settings)) from None
        if self._settings.is_plain:
            await self._see_that_it_is_a_node(deadline)
        elif self._settings.hello is not None:
            try:
                await self.ping(max(0.0, deadline - self._loop.time()))
            except TimedOut:
                raise Unreachable(f"the node at {self._address} does not answer :hello") from None

    async def _see_that_it_is_a_node(self, deadline: float) -> None:
        question = self._issue("tokens", (), max(0.0, deadline - self._loop.time()))  # which original nodes know, too
        answered = asyncio.ensure_future(self._wait(question))
        try:
            while not self._core.has_answered(question):
                await asyncio.wait([answered], timeout=min(ANSWER_S, max(0.0, deadline - self._loop.time())))
                if self._core.has_answered(question):
                    return
                what = ""
                if self._address:
                    what = await asyncio.to_thread(what_is_at, self._address, self._settings.tls)
                is_late = self._loop.time() >= deadline
                if what and (is_late or what != SILENT):
                    raise Unreachable(f"no node at {self._settings.where}: {what}")
                if is_late:
                    raise self._core.unreachable(cause_so_far(self._trying, self._settings))
        finally:
            answered.cancel()  # which abandons the question, if it is not answered

    async def close(self, drain: float = 0.0) -> None:
        if self._pid != process.pid():
            return  # the connection is the parent's, and so is the event loop
        if milliseconds(drain):
            await self._finish_serving(drain)
        for task in [*self._adding, *([self._redialling] if self._redialling is not None else [])]:
            task.cancel()
        self._flush()
        links, self._links, self._link = self._links, {}, None
        await super().close()
        for link in links:
            link.transport.close()
        if links:
            await asyncio.wait([link.lost for link in links], timeout=LINGER_S)
        for link in links:
            if not link.lost.done():  # else asyncio of Python 3.11.2 has let go of what it would abort
                link.transport.abort()

    async def _meet_node(self) -> None:
        if not self._settings.timeout_value and self._core.main.greeting is None:
            with contextlib.suppress(TimedOut, Unreachable, RequestError):
                await self.hello(MEET_S)

    def _check_open(self) -> None:
        super()._check_open()
        if self._pid != process.pid():
            raise Closed(f"the client belongs to process {self._pid}: connect anew in this one")

    def _issue(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        self._begun += 1
        call = super()._issue(kind, arguments, timeout)
        if self._link is None:
            self._redial()
        line = call.line
        if line is not None and line.output_bytes > MAX_OUTPUT_BYTES:
            self._flush()
        return call

    async def _wait_for_room(self, call: Pending) -> None:
        """Wait until the node has read some of what was written, the connection is lost, or the call is over."""
        link: Link | None = None if call.line is None else call.line.shell
        if link is None or link.room.is_set():
            return
        try:
            async with asyncio.timeout_at(call.expires):
                await link.room.wait()
        except TimeoutError:
            return
        except BaseException:
            self._abandon(call)
            raise

    def _act(self) -> None:
        super()._act()
        core = self._core
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

    def _tell(self, news: News) -> None:
        if not self._closed:
            self._herald.tell(news)

    def _flush_turn(self) -> None:
        """Write what this turn of the loop has brought; if it was one call, the next call need not wait for more."""
        self._flush_is_due = False
        self._is_eager = self._begun < 2
        self._begun = 0
        self._flush()

    def _flush(self) -> None:
        """Write what there is, and close what is to be closed."""
        touched = self._core.touched
        while touched:
            line = touched.pop()
            link: Link | None = line.shell
            if link is None:
                continue
            if line.hang_up:
                link.transport.abort()
                self.lost(link, line.hang_up)
            elif data := line.output():
                link.transport.write(data)

    # The connections.

    def received(self, link: Link, data: bytes) -> None:
        """The node wrote."""
        line = self._links.get(link)
        if line is not None:
            core, now = self._core, self._loop.time()
            core.receive(line, data, now)
            self._act()
            if now >= core.routes.dial_at:
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
            self._core.disconnected(cause, now)
            self._redial()
        else:
            self._core.lost(line, now)
        self._act()

    def _use(self, link: Link, line: Line) -> None:
        line.shell = link
        self._links[link] = line
        wait = self._core.wait(self._loop.time())
        if wait is not None:
            self._wake_by(self._loop.time() + wait)

    def _redial(self) -> None:
        if self._core.busy and self._redialling is None:
            self._redialling = self._loop.create_task(self._dial_while_busy())

    async def _dial_while_busy(self) -> None:
        try:
            while self._link is None and self._core.busy:
                await asyncio.sleep(backoff.delay(self._core.failures - 1, random.random()))
                await self._attempt()
        finally:
            self._redialling = None

    async def _attempt(self) -> None:
        """Try every address that there is, until a node is reached."""
        round = self._trying = Round(self._core.homes, random.random)
        while (address := await self._next_address(round)) is not None:
            try:
                patience = ATTEMPT_S if round.is_last else HASTY_S
                link = await dial(self._loop, self, address, patience, self._settings.tls)
            except (OSError, UnicodeError) as error:
                round.failed(address, cause_of(error))
                continue
            self._link, self._address = link, address
            self._core.connected_to_node(self._loop.time(), address)
            self._use(link, self._core.main)
            break
        else:
            self._core.disconnected(round.cause(self._settings.where), self._loop.time())
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
            source.close()  # whoever was cancelled leaves no thread behind that waits

    # Direct ones.

    def _add_direct(self, now: float) -> None:
        while self._link is not None and (wanted := self._core.dial(now)) is not None:
            task = self._loop.create_task(self._dial_direct(self._link, wanted))
            self._adding.add(task)
            task.add_done_callback(self._adding.discard)

    async def _dial_direct(self, main: Link, wanted: Dial) -> None:
        core = self._core
        try:
            async with asyncio.timeout(ATTEMPT_S):
                beside: socket.socket = main.transport.get_extra_info("socket")
                address = wanted.address or self._address
                assert address is not None  # there is a main one
                peer = (beside.family, beside.getpeername())
                family, form = peer if wanted.address is None else numeric(wanted.address)
                sock = direct_socket(family, wanted)
                link = await dial_by(self._loop, self, sock, form, address.host, self._settings.tls)
        except OSError:
            core.not_opened(wanted, self._loop.time())
        else:
            self._use(link, core.opened(wanted, self._loop.time()))
        self._act()
