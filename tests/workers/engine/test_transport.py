"""Whoever has a transport need not know whether it speaks TLS: both do the same."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skywalker.tls.contexts import client_context, server_context
from skywalker.tls.records import Records
from tests.authority import Authority
from workers.engine.secure_socket import SecureSocket
from workers.engine.transport import PlainSocket, Transport

MUCH = 1 << 16

TEXT = b"".join(number.to_bytes(4, "big") for number in range(200_000))

Make = Callable[[socket.socket, socket.socket], tuple[Transport, Transport]]


@pytest.fixture(scope="module")
def contexts(authority: Authority) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return server_context(*authority.sign("127.0.0.1")), client_context(authority.ca)


@pytest.fixture(params=["plain", "tls"])
def ends(
    request: pytest.FixtureRequest, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> Iterator[tuple[Transport, Transport]]:
    sockets = socket.socketpair()
    for each in sockets:
        each.setblocking(False)
    ends: tuple[Transport, Transport] = PlainSocket(sockets[0]), PlainSocket(sockets[1])
    if request.param == "tls":
        server = SecureSocket(sockets[0], Records(contexts[0], server_side=True))
        client = SecureSocket(sockets[1], Records(contexts[1], server_hostname="127.0.0.1"))
        client.hello()
        while not (server.established and client.established):
            for each in (server, client):
                try:
                    each.shake_hands()
                except BlockingIOError:
                    continue
        ends = server, client
    yield ends
    for end in ends:
        end.close()


def test_what_is_written_is_read_whoever_is_slow(ends: tuple[Transport, Transport]) -> None:
    here, there = ends
    written, read = 0, b""
    while len(read) < len(TEXT):
        try:
            # What is begun comes first, and what comes after it may be anything.
            written += here.send(TEXT[written : written + max(50_000, here.begun)])
        except BlockingIOError:
            assert here.begun <= len(TEXT) - written
        with contextlib.suppress(BlockingIOError):
            read += there.recv(10_000)
    assert (read, written, here.begun) == (TEXT, len(TEXT), 0)


def test_nothing_to_read_is_not_the_end_and_the_end_is_for_good(ends: tuple[Transport, Transport]) -> None:
    here, there = ends
    with contextlib.suppress(BlockingIOError):
        assert there.recv(MUCH) != b"", "TLS may have something to say first"
    assert not there.ended
    assert here.send(b"last") == 4
    here.shutdown(socket.SHUT_WR)
    assert there.recv(MUCH) == b"last"
    assert [there.recv(MUCH) for _ in range(2)] == [b"", b""]
    assert there.send(b"answer") == 6
    assert here.recv(MUCH) == b"answer"


def test_both_know_their_socket(ends: tuple[Transport, Transport]) -> None:
    here, _ = ends
    assert here.fileno() > 0
    assert here.getsockname() == ""
    here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    assert here.names() == ()


def test_only_those_who_begin_tls_know_of_it() -> None:
    root = Path(__file__).resolve().parents[3]
    knowing = {
        path.relative_to(root).as_posix() for path in root.glob("workers/**/*.py") if "SecureSocket" in path.read_text()
    }
    assert knowing == {"workers/engine/secure_socket.py", "workers/doors/handshake.py", "workers/nodes/attempt.py"}
