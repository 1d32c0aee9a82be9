"""The asyncio client: tasks share one connection.

What tasks write in one turn of the event loop leaves in one system call. When the node does
not keep up, begin() and all that builds on it wait for room.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from typing import Any, Final

from skywalker.clients import backoff
from skywalker.clients.aio_interface import Pending
from skywalker.clients.calls import Calls
from skywalker.clients.dialer import ATTEMPT_S, cause_of, is_own_echo, tune
from skywalker.clients.requests import Kind, milliseconds
from skywalker.clients.settings import CLOJURE_KEYWORD, CONNECT_TIMEOUT_S, Dialect, Settings
from skywalker.clients.tasks import TaskJunction
from skywalker.errors import Closed, TimedOut, Unreachable
from skywalker.limits import DEFAULT_ADDRESS, KIB, MAX_FRAME

MAX_OUTPUT_BYTES: Final = 64 * KIB
"""Bytes gathered in one turn of the loop at most: a task that begins call after call never ends its turn."""

LINGER_S: Final = 1.0
"""Seconds that close() gives the last bytes to leave."""


async def connect(
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
    """Connect to the node at `address`, "host:port", and return a client for tasks of the running event loop.

    Arguments and errors are those of skywalker.connect().
    """
    settings = Settings.of(
        address, dialect=dialect, timeout_value=timeout_value, name=name, ack=ack, token=token, max_frame=max_frame
    )
    milliseconds(connect_timeout)
    client = Client(settings)
    try:
        await client.open(connect_timeout)
    except BaseException:
        await client.close()
        raise
    return client


class _Link(asyncio.Protocol):
    """One connection of a client."""

    transport: asyncio.Transport

    def __init__(self, client: Client) -> None:
        self._client = client
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.room = asyncio.Event()
        self.room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._client.received(self, data)

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.set()
        if not self.lost.done():
            self.lost.set_result(None)
        self._client.lost(self, cause_of(exc or ConnectionResetError("the node closed the connection")))


class Client(TaskJunction):
    """A client of one node. Made by connect()."""

    _core: Calls

    def __init__(self, settings: Settings) -> None:
        super().__init__(Calls(settings))
        self._settings = settings
        self._pid = os.getpid()
        self._link: _Link | None = None
        self._redialling: asyncio.Task[None] | None = None
        self._flush_is_due = False

    async def open(self, timeout: float) -> None:
        """Make the first connection. Raises Unreachable if there is none within `timeout` seconds."""
        deadline = self._loop.time() + timeout
        try:
            async with asyncio.timeout_at(deadline):
                await self._attempt()
                while self._link is None:
                    await asyncio.sleep(backoff.delay(self._core.failures - 1, random.random()))
                    await self._attempt()
        except TimeoutError:
            raise self._core.unreachable() from None
        if self._settings.hello is not None:
            try:
                await self.ping(max(0.0, deadline - self._loop.time()))
            except TimedOut:
                raise Unreachable(f"the node at {self._settings.address} does not answer :hello") from None

    async def close(self) -> None:
        if self._pid != os.getpid():
            return  # the connection is the parent's, and so is the event loop
        if self._redialling is not None:
            self._redialling.cancel()
        self._flush()
        link, self._link = self._link, None
        await super().close()
        if link is not None:
            link.transport.close()
            await asyncio.wait([link.lost], timeout=LINGER_S)
            link.transport.abort()

    def _check_open(self) -> None:
        super()._check_open()
        if self._pid != os.getpid():
            raise Closed(f"the client belongs to process {self._pid}: connect anew in this one")

    async def _begin(self, kind: Kind, arguments: tuple[Any, ...], timeout: float) -> Pending:
        call = await super()._begin(kind, arguments, timeout)
        link = self._link
        if link is None:
            self._redial()
            return call
        if self._core.output_bytes > MAX_OUTPUT_BYTES:
            self._flush()
        if not link.room.is_set():
            await self._wait_for_room(link, call)
        return call

    async def _wait_for_room(self, link: _Link, call: Pending) -> None:
        """Wait until the node has read some of what was written, the connection is lost, or the call is over."""
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
        if core.hang_up and self._link is not None:
            self._link.transport.abort()
            self.lost(self._link, core.hang_up)
        elif core.has_output and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        data = self._core.output()
        if data and self._link is not None:
            self._link.transport.write(data)

    # The connection.

    def received(self, link: _Link, data: bytes) -> None:
        """The node wrote."""
        if link is self._link:
            self._core.receive(data, self._loop.time())
            self._act()

    def lost(self, link: _Link, cause: str) -> None:
        """A connection is lost."""
        if link is self._link:
            self._link = None
            self._core.disconnected(cause)
            self._act()
            self._redial()

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
        address = self._settings.address
        try:
            async with asyncio.timeout(ATTEMPT_S):
                transport, link = await self._loop.create_connection(lambda: _Link(self), address.host, address.port)
            sock: socket.socket = transport.get_extra_info("socket")
            if is_own_echo(sock):
                transport.abort()
                raise ConnectionRefusedError("connection refused")
            tune(sock)
        except (OSError, UnicodeError) as error:
            self._core.disconnected(cause_of(error))
        else:
            self._link = link
            self._core.connected_to_node(self._loop.time())
        self._act()
