"""What a SecureSocket says of written bytes is what the other end can read, whenever the connection breaks."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skywalker.tls.contexts import client_context, server_context
from skywalker.tls.records import Records
from tests.authority import Authority
from tests.workers.wire_client import RST_ON_CLOSE
from workers.engine.secure_socket import RECORD, SecureSocket

SMALL = 4096

TEXT = b"".join(number.to_bytes(4, "big") for number in range(300_000))


@pytest.fixture(scope="module")
def contexts(authority: Authority) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return server_context(*authority.sign("127.0.0.1")), client_context(authority.ca)


class Pair:
    """The worker's end of a connection, and a client's whose reading is up to the test."""

    def __init__(self, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
        ours, self.theirs = socket.socketpair()
        for end in (ours, self.theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
            end.setblocking(False)
        self.node = SecureSocket(ours, Records(contexts[0], server_side=True))
        self.client = Records(contexts[1], server_hostname="127.0.0.1")
        while not (self.client.shake_hands() and self.node.established):
            self.flush()
            if not self.node.established:
                with contextlib.suppress(BlockingIOError):
                    self.node.shake_hands()
            self.take(SMALL)

    def flush(self) -> None:
        if data := self.client.output():
            self.theirs.send(data)

    def take(self, count: int) -> bytes:
        """Have the client read so many bytes of ciphertext; return the plaintext that this makes."""
        with contextlib.suppress(BlockingIOError):
            self.client.feed(self.theirs.recv(count))
        return self.client.read() if self.client.established else b""

    def close(self) -> None:
        self.node.close()
        self.theirs.close()


@pytest.fixture
def pair(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[Pair]:
    pair = Pair(contexts)
    yield pair
    pair.close()


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 60_000), st.integers(0, 60_000)), min_size=1, max_size=20))
def test_what_counts_as_written_is_what_could_be_read_if_the_worker_died_now(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], steps: list[tuple[int, int]]
) -> None:
    pair = Pair(contexts)
    written, read = 0, b""
    for send, take in steps:
        assert pair.node.begun <= RECORD
        # What is begun comes first, and what comes after it may be anything.
        data = TEXT[written : written + max(send, pair.node.begun)]
        with contextlib.suppress(BlockingIOError):
            written += pair.node.send(data)
        read += pair.take(take) if take else b""
        assert len(read) <= written
    pair.node._socket.close()  # as when it is killed
    while True:
        try:
            data = pair.theirs.recv(65536)
        except BlockingIOError:
            break
        if not data:
            break
        pair.client.feed(data)
    read += pair.client.read()
    pair.theirs.close()
    assert read == TEXT[:written]


def test_more_than_is_asked_for_is_returned_since_nobody_would_tell_of_the_rest(pair: Pair) -> None:
    pair.client.write(b"v" * 3 * RECORD)
    cipher = pair.client.output()
    read = b""
    while cipher or len(read) < 3 * RECORD:
        with contextlib.suppress(BlockingIOError):
            cipher = cipher[pair.theirs.send(cipher) :]
        with contextlib.suppress(BlockingIOError):
            read += pair.node.recv(100_000)
    assert read == b"v" * 3 * RECORD
    with pytest.raises(BlockingIOError):
        pair.node.recv(100)


def test_one_that_is_reset_says_so_when_it_is_read_and_not_when_nothing_more_is_said(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    node = SecureSocket(ours, Records(contexts[0], server_side=True))
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
    theirs.close()
    node.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError, match="reset"):
        node.recv(SMALL)
    node.close()


def test_only_those_who_begin_tls_know_of_it() -> None:
    root = Path(__file__).resolve().parents[3]
    knowing = {
        path.relative_to(root).as_posix() for path in root.glob("workers/**/*.py") if "SecureSocket" in path.read_text()
    }
    assert knowing == {"workers/engine/secure_socket.py", "workers/doors/handshake.py", "workers/nodes/attempt.py"}
