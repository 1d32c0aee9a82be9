"""One connection of an asyncio client, and how it is made."""

from __future__ import annotations

import asyncio
import socket
from typing import Final, Protocol

from skywalker.address import Address
from skywalker.clients.dialer import tune
from skywalker.dialling import cause_of, is_own_echo
from skywalker.limits import KIB

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
        self.room = asyncio.Event()
        self.room.set()

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


async def dial(loop: asyncio.AbstractEventLoop, owner: Owner, address: Address, patience: float) -> Link:
    """Return a new connection. Raises OSError or UnicodeError, TimeoutError once `patience` seconds are over."""
    async with asyncio.timeout(patience):
        transport, link = await loop.create_connection(lambda: Link(owner), address.host, address.port)
    sock: socket.socket = transport.get_extra_info("socket")
    if is_own_echo(sock):
        transport.abort()
        raise ConnectionRefusedError("connection refused")
    if link.lost.done():
        raise ConnectionResetError("the node closed the connection")
    tune(sock)
    return link
