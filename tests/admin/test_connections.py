"""Many who ask, ask slowly, or do not read: none of them keeps others from an answer."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.admin.asking import IDLE_S, Asker, served
from tests.helpers import eventually, time_factor
from workers.agent.admin.transport import MAX_CONNECTIONS

LISTEN = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def admin() -> Iterator[Asker]:
    with served() as (asker, _):
        yield asker


def is_closed(sock: socket.socket, within: float | None = None) -> bool:
    if within is not None:
        sock.settimeout(within)
    try:
        while sock.recv(65536):
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def listen(asker: Asker, crowd: contextlib.ExitStack) -> socket.socket:
    """Return a connection by which the state has begun to come."""
    sock = crowd.enter_context(asker.connect())
    sock.sendall(LISTEN)
    assert sock.recv(65536).startswith(b"HTTP/1.1 200")
    return sock


def test_more_idle_connections_than_are_let_in_silence_nobody(admin: Asker) -> None:
    with contextlib.ExitStack() as crowd:
        idle = [crowd.enter_context(admin.connect()) for _ in range(2 * MAX_CONNECTIONS)]
        for sock in idle[::2]:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: local")
        began = time.monotonic()
        for _ in range(20):
            assert admin.ask("/health")[0] == 200
        assert time.monotonic() - began < 5.0 * time_factor()
        assert sum(is_closed(sock) for sock in idle[:MAX_CONNECTIONS]) >= MAX_CONNECTIONS - 1


def test_a_request_that_does_not_come_whole_ends_its_connection(admin: Asker) -> None:
    with admin.connect() as silent, admin.connect() as slow, admin.connect() as again:
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        for letter in b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + 2000 * b"y":
            try:
                slow.sendall(bytes([letter]))
            except OSError:
                break
            time.sleep(0.01)
        assert IDLE_S * 0.9 < time.monotonic() - began < IDLE_S * 3 * time_factor()
        assert all(is_closed(sock) for sock in (silent, slow, again))


def test_what_is_no_http_is_refused_and_costs_only_itself(admin: Asker) -> None:
    for junk in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" * 50, b"A" * 100_000):
        with admin.connect() as sock, contextlib.suppress(ConnectionError):
            sock.sendall(junk)
            sock.settimeout(5.0 * time_factor())
            answer = sock.recv(65536)
            assert not answer or b" 400 " in answer.splitlines()[0]
    with admin.connect() as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert b" 400 " in sock.recv(65536).splitlines()[0]
    assert admin.ask("/health")[0] == 200


@pytest.mark.parametrize("path", [b"/", b"/api/events"])
def test_a_request_whose_rest_is_no_http_is_no_bug(path: bytes) -> None:
    head = b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served() as (admin, logged):
        for _ in range(40):
            for pieces in ([head + b"ZZ\r\n"], [head, b"ZZ\r\n"]):
                with admin.connect() as sock, contextlib.suppress(ConnectionError):
                    for piece in pieces:
                        sock.sendall(piece)
                        if piece is not pieces[-1]:
                            time.sleep(0.001)  # so that an answer may have begun
                    assert is_closed(sock, 5.0 * time_factor())
        assert "bug" not in logged()


def test_listeners_hear_the_state_each_second(admin: Asker) -> None:
    with admin.events() as events:
        times = [next(events)["time"] for _ in range(3)]
        assert times == sorted(set(times))


def test_more_listeners_than_there_is_room_for_keep_nobody_out(admin: Asker) -> None:
    with contextlib.ExitStack() as crowd:
        listening = [listen(admin, crowd) for _ in range(MAX_CONNECTIONS)]
        assert admin.ask("/health")[0] == 200
        with admin.events() as events:
            assert next(events)["node"]
            assert admin.ask("/api/state")[0] == 200
            assert next(events)["node"]
            # Those who have listened longest gave way, and no others.
            gone = [sock for sock in listening if is_closed(sock, 0.02)]
        assert gone == listening[: len(gone)]
        assert 1 <= len(gone) <= 3


def test_of_many_who_come_to_listen_at_once_as_many_stay_as_there_is_room_for(admin: Asker) -> None:
    with contextlib.ExitStack() as crowd:
        socks = [crowd.enter_context(admin.connect()) for _ in range(MAX_CONNECTIONS + 20)]
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.sendall(LISTEN)
        eventually(lambda: sum(is_closed(sock, 0.01) for sock in socks) >= 20, within=15)
        assert sum(is_closed(sock, 0.01) for sock in socks) == 20
        assert admin.ask("/health")[0] == 200


def test_listeners_of_one_address_do_not_take_the_place_of_another(admin: Asker) -> None:
    with contextlib.ExitStack() as crowd:
        elsewhere = socket.create_connection(
            (admin.address.host, admin.address.port), 10 * time_factor(), source_address=("127.0.0.2", 0)
        )
        crowd.enter_context(elsewhere).sendall(LISTEN)
        assert elsewhere.recv(65536).startswith(b"HTTP/1.1 200")
        for _ in range(MAX_CONNECTIONS + 5):
            listen(admin, crowd)
        assert not is_closed(elsewhere, 0.1)


def test_a_listener_that_does_not_read_costs_no_memory_and_holds_nobody_up(admin: Asker) -> None:
    with admin.connect() as deaf, admin.events() as events:
        deaf.sendall(LISTEN)
        next(events)
        before = psutil.Process().memory_info().rss
        asking = [threading.Thread(target=lambda: [admin.ask("/api/state") for _ in range(30)]) for _ in range(4)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        next(events)
        assert psutil.Process().memory_info().rss - before < 8 * 2**20


def test_one_that_never_reads_what_it_asks_for_is_cut_off(admin: Asker) -> None:
    with admin.connect() as deaf:
        deaf.setblocking(False)
        before = psutil.Process().memory_info().rss
        deadline = time.monotonic() + 30 * time_factor()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < deadline:
                try:
                    deaf.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                except BlockingIOError:
                    time.sleep(0.05)
        assert time.monotonic() < deadline
        assert psutil.Process().memory_info().rss - before < 40 * 2**20
        assert admin.ask("/health")[0] == 200
