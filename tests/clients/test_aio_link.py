"""Connections of asyncio clients that are given up before they are made: their sockets are closed, once, by one."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import socket
import ssl

import pytest

from skywalker.clients.aio.line_driver import Link, dial_by
from skywalker.tls.contexts import client_context, server_context
from tests.authority import Authority
from tests.helpers import time_factor

SOON = 5.0

NUMBER = 500
"""Of a descriptor, far from all that are in use."""


class Nobody:
    """Wants to know nothing."""

    def received(self, link: Link, data: bytes) -> None:
        pass

    def stalled(self, more: int) -> None:
        pass

    def lost(self, link: Link, cause: str) -> None:
        pass


class Host:
    """Takes connections in the event loop of who dials, so that each of its steps is a turn of that."""

    def __init__(self) -> None:
        self.open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        with contextlib.suppress(OSError):
            while data := await reader.read(1000):
                writer.write(data)
        self.open -= 1
        writer.close()


def contexts(authority: Authority, kind: str) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """Return those of a host and of who dials it."""
    if kind == "plain":
        return None, None
    return server_context(*authority.sign("127.0.0.1")), client_context(authority.ca)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def echo(sock: socket.socket, form: tuple[str, int]) -> None:
    """Use a socket as anybody may who was given this number next."""
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, form)
    for _ in range(3):
        await loop.sock_sendall(sock, b"word")
        assert await loop.sock_recv(sock, 100) == b"word"


def numbered(number: int) -> socket.socket:
    """Return a new socket that never blocks, with a number that nothing else takes meanwhile."""
    with socket.socket() as made:
        sock = socket.socket(fileno=fcntl.fcntl(made, fcntl.F_DUPFD, number))
    sock.setblocking(False)
    assert sock.fileno() == number
    return sock


async def closed(sock: socket.socket) -> None:
    """Wait until a socket is."""
    async with asyncio.timeout(SOON * time_factor()):
        while sock.fileno() != -1:
            await asyncio.sleep(0)


@pytest.mark.parametrize("kind", ["plain", "tls"])
def test_whenever_a_dial_is_given_up_its_socket_is_closed_and_its_number_is_free(
    authority: Authority, kind: str
) -> None:
    ours, theirs = contexts(authority, kind)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        troubles: list[dict[str, object]] = []
        loop.set_exception_handler(lambda _, trouble: troubles.append(trouble))
        host, plain = Host(), Host()
        async with (
            await asyncio.start_server(host.serve, "127.0.0.1", 0, ssl=ours) as server,
            await asyncio.start_server(plain.serve, "127.0.0.1", 0) as beside,
        ):
            form, other = server.sockets[0].getsockname(), beside.sockets[0].getsockname()
            for count in itertools.count(1):
                sock = numbered(NUMBER)
                dialling = loop.create_task(dial_by(loop, Nobody(), sock, form, "127.0.0.1", theirs))
                await turns(count)
                if dialling.done():
                    dialling.result().transport.abort()
                    break
                dialling.cancel()
                await asyncio.wait([dialling])
                assert dialling.cancelled()
                await closed(sock)
                with numbered(NUMBER) as successor:
                    async with asyncio.timeout(SOON * time_factor()):
                        await echo(successor, other)
            assert count > 3
            async with asyncio.timeout(SOON * time_factor()):
                while host.open or plain.open:
                    await asyncio.sleep(0.01)
        assert not troubles

    asyncio.run(run())
