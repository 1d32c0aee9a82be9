"""Many who ask, ask slowly, or do not read: none of them keeps others from an answer."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import psutil

from tests.admin.asking import Asker, agent_of, node
from tests.helpers import eventually, time_factor
from workers.agent.admin.transport import IDLE_S, MAX_CONNECTIONS

LISTEN = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


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
        assert time.monotonic() - began < IDLE_S * time_factor()
        assert sum(is_closed(sock) for sock in idle[:MAX_CONNECTIONS]) >= MAX_CONNECTIONS - 1


def test_a_request_that_does_not_come_whole_ends_its_connection(admin: Asker) -> None:
    with admin.connect() as silent, admin.connect() as slow, admin.connect() as again:
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(65536).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        for letter in b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + 200 * b"y":
            try:
                slow.sendall(bytes([letter]))
            except OSError:
                break
            time.sleep(0.05)
        assert IDLE_S * 0.9 < time.monotonic() - began < IDLE_S * 1.5 * time_factor()
        assert all(is_closed(sock) for sock in (silent, slow, again))


def test_what_is_no_http_is_refused_and_costs_only_itself(admin: Asker) -> None:
    for junk in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" * 50, b"A" * 100_000):
        with admin.connect() as sock, contextlib.suppress(ConnectionError):
            sock.sendall(junk)
            sock.settimeout(2 * IDLE_S * time_factor())
            answer = sock.recv(65536)
            assert not answer or b" 400 " in answer.splitlines()[0]
    with admin.connect() as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert b" 400 " in sock.recv(65536).splitlines()[0]
    assert admin.ask("/health")[0] == 200


def test_listeners_hear_the_state_each_second() -> None:
    with node() as (found, asker), asker.events() as events:
        heard = [next(events) for _ in range(3)]
        times = [state["time"] for state in heard]
        assert times == sorted(set(times))
        assert heard[0]["node"]["pid"] == found.pid


def test_more_listeners_than_there_is_room_for_keep_nobody_out() -> None:
    with node() as (_, asker), contextlib.ExitStack() as crowd:
        listening = [listen(asker, crowd) for _ in range(MAX_CONNECTIONS)]
        assert asker.ask("/health")[0] == 200
        with asker.events() as events:
            assert next(events)["node"]
            assert asker.ask("/api/state")[0] == 200
            assert next(events)["node"]
            # Those who have listened longest gave way, and no others.
            gone = [sock for sock in listening if is_closed(sock, 0.1)]
        assert gone == listening[: len(gone)]
        assert 1 <= len(gone) <= 3


def test_of_many_who_come_to_listen_at_once_as_many_stay_as_there_is_room_for() -> None:
    with node() as (_, asker), contextlib.ExitStack() as crowd:
        socks = [crowd.enter_context(asker.connect()) for _ in range(MAX_CONNECTIONS + 20)]
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.sendall(LISTEN)
        eventually(lambda: sum(is_closed(sock, 0.05) for sock in socks) >= 20, within=15)
        assert sum(is_closed(sock, 0.05) for sock in socks) == 20
        assert asker.ask("/health")[0] == 200


def test_listeners_of_one_address_do_not_take_the_place_of_another() -> None:
    with node() as (_, asker), contextlib.ExitStack() as crowd:
        elsewhere = socket.create_connection(
            (asker.address.host, asker.address.port), 10 * time_factor(), source_address=("127.0.0.2", 0)
        )
        crowd.enter_context(elsewhere).sendall(LISTEN)
        assert elsewhere.recv(65536).startswith(b"HTTP/1.1 200")
        for _ in range(MAX_CONNECTIONS + 5):
            listen(asker, crowd)
        assert not is_closed(elsewhere, 0.1)


def test_a_listener_that_does_not_read_costs_no_memory_and_holds_nobody_up() -> None:
    with node() as (found, asker), asker.connect() as deaf, asker.events() as events:
        deaf.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        agent = psutil.Process(agent_of(found))
        next(events)
        before = agent.memory_info().rss
        asking = [threading.Thread(target=lambda: [asker.ask("/api/state") for _ in range(30)]) for _ in range(4)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        for _ in range(3):
            next(events)
        assert agent.memory_info().rss - before < 8 * 2**20


def test_one_that_never_reads_what_it_asks_for_is_cut_off() -> None:
    with node() as (found, asker), asker.connect() as deaf:
        deaf.setblocking(False)
        agent = psutil.Process(agent_of(found))
        sent = 0
        request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        deadline = time.monotonic() + 30 * time_factor()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < deadline:
                try:
                    sent += deaf.send(request)
                except BlockingIOError:
                    time.sleep(0.05)
        assert time.monotonic() < deadline
        assert agent.memory_info().rss < 120 * 2**20
        assert asker.ask("/health")[0] == 200
