"""One connection of an asyncio client, and how it is made."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, Final, Protocol

from skywalker.address import Address
from skywalker.clients.homes import Round
from skywalker.clients.settings import Settings
from skywalker.clients.sockets import tune
from skywalker.dialling import cause_of, is_own_echo, server_name
from skywalker.limits import KIB
from skywalker.tls.words import CLOSED, SILENT

if TYPE_CHECKING:
    import ssl

MAX_OUTPUT_BYTES: Final = 64 * KIB
"""Bytes gathered in one turn of the loop at most: a task that begins call after call never ends its turn."""

LINGER_S: Final = 1.0
"""Seconds that close() gives the last bytes to leave, and the event loop to close the sockets."""


class Owner(Protocol):
    """What is told of its connections."""

    def received(self, link: Link, data: bytes) -> None:
        """The node wrote."""

    def stalled(self, more: int) -> None:
        """The node on one connection does not keep up any more, 1, or does again, -1."""

    def lost(self, link: Link, cause: str) -> None:
        """A connection is lost."""


class Link(asyncio.Protocol):
    """One connection. There is `room` while the node keeps up."""

    transport: asyncio.Transport

    def __init__(self, owner: Owner) -> None:
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
    loop: asyncio.AbstractEventLoop, owner: Owner, address: Address, patience: float, tls: ssl.SSLContext | None
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


def cause_so_far(round: Round, settings: Settings) -> str:
    """Return why no node was reached, in the middle of a round."""
    if settings.tls is None:
        return round.cause(settings.where)
    return round.cause(settings.where, SILENT)


async def dial_by(
    loop: asyncio.AbstractEventLoop,
    owner: Owner,
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
    loop: asyncio.AbstractEventLoop, owner: Owner, tls: ssl.SSLContext | None, name: str, **where: Any
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
