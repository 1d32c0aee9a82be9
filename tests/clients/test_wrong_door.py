"""connect() to what is no node's door for clients: it fails soon, and says what is there."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import skywalker
from skywalker.clients.aio import client as aio
from skywalker.clients.blocking import client as blocking
from skywalker.embedding import Node, embedded
from skywalker.tls.contexts import server_context
from tests.authority import Authority
from tests.clients.driving import Place
from tests.clients.proxy import Proxy
from tests.helpers import time_factor

MakePlace = Callable[..., Place]

SOON_S = 2.0
ANSWER_S = 0.3


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a node be expected to answer at once."""
    for face in (aio, blocking):
        monkeypatch.setattr(face, "ANSWER_S", ANSWER_S)


@pytest.fixture(scope="module")
def doors() -> Iterator[Node]:
    """A node with all its doors."""
    with embedded(workers=1, pubsub=True, admin=True) as node:
        yield node


class Page(http.server.BaseHTTPRequestHandler):
    """Any web server."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def web_server(secure: Callable[[socket.socket], socket.socket] = lambda sock: sock) -> Iterator[str]:
    """Have a web server, and return its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.socket = secure(server.socket)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # it is spoken to strangely here
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fails(make_place: MakePlace, where: str, words: str, **options: object) -> None:
    """Have a connect() fail in its time, and say so."""
    began = time.monotonic()
    with pytest.raises(skywalker.SkywalkerError, match=words) as caught:
        make_place(where).join(**{"connect_timeout": 60.0 * time_factor()} | options)
    assert time.monotonic() - began < SOON_S * time_factor()
    assert isinstance(caught.value, (skywalker.Unreachable, skywalker.Unauthorized))


@pytest.mark.parametrize("options", [{}, {"name": "me", "dialect": "first"}], ids=str)
def test_a_pub_sub_door(make_place: MakePlace, doors: Node, options: dict[str, object]) -> None:
    fails(make_place, doors.pubsub_address, r"pub/sub door .*pubsub\.connect\(\).* 3443", **options)


@pytest.mark.parametrize("options", [{}, {"name": "me"}], ids=str)
def test_the_admin_door(make_place: MakePlace, doors: Node, options: dict[str, object]) -> None:
    fails(make_place, doors.admin_address, "admin door .* 3443", **options)


def test_a_web_server(make_place: MakePlace) -> None:
    with web_server() as address:
        fails(make_place, address, "HTTP server.* 3443")


def test_a_web_server_by_tls(make_place: MakePlace, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = server_context(*authority.sign("127.0.0.1"))
    with web_server(lambda sock: context.wrap_socket(sock, server_side=True)) as address:
        fails(lambda where: make_place(where, tls=authority.context()), address, "HTTP server.* 3443")
        fails(make_place, address, f"speaks TLS.* skywalkers://{address}")


def test_a_door_that_says_nothing_in_the_time_there_is(make_place: MakePlace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        began = time.monotonic()
        fails(make_place, where, "does not answer like a node.* 3443", connect_timeout=0.2)
        assert 0.2 <= time.monotonic() - began < 0.45 * time_factor()


def test_a_node_that_is_only_slow_is_waited_for(make_place: MakePlace, doors: Node) -> None:
    with Proxy(doors.host, doors.port) as proxy:
        proxy.stall()
        threading.Timer(1.5 * ANSWER_S, proxy.flow).start()
        client = make_place(proxy.address).join(connect_timeout=10.0 * time_factor())
        assert client.recv("nobody sends", timeout=0, default=None) is None


def test_a_door_that_says_something_else(make_place: MakePlace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    sock, _ = listener.accept()
                    with sock:
                        sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
                        sock.recv(100)

        thread = threading.Thread(target=greet)
        thread.start()
        fails(make_place, f"127.0.0.1:{listener.getsockname()[1]}", "says b'SSH-2.0")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
