"""The admin server of a node with a certificate: it speaks TLS, and all that is true of it without is true with it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker.access import token
from skywalker.access.access import Access
from skywalker.tls.contexts import server_context
from tests.admin.asking import IDLE_S, Asker, access_of, served
from tests.admin.test_connections import is_closed
from tests.admin.test_gate import bearer
from tests.authority import Authority
from tests.helpers import time_factor
from workers.agent.admin.transport import MAX_CONNECTIONS

NAME = "node.example"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@contextlib.contextmanager
def secured(authority: Authority, *, ca: str = "", access: Access | None = None) -> Iterator[Asker]:
    """Run an admin server that speaks TLS, and asks for a certificate of the authority `ca` if there is one."""
    context = server_context(*authority.sign(NAME, "127.0.0.1"), ca, required=bool(ca) and access is None)
    with served(tls=lambda: context, access=access, context=authority.context()) as (asker, _):
        yield asker


@pytest.fixture
def admin(authority: Authority) -> Iterator[Asker]:
    with secured(authority) as asker:
        yield asker


def test_all_is_shown_over_tls_and_nothing_without(admin: Asker) -> None:
    assert admin.ask("/health")[2] == b'{"status":"OK"}'
    assert len(admin.ask("/")[2]) > 10_000
    with admin.connect() as plain:
        plain.sendall(b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert b"HTTP" not in plain.recv(65536)


def test_any_name_is_good_since_a_browser_sees_whether_it_is_in_the_certificate(admin: Asker) -> None:
    for host in (NAME, "localhost", f"other.example:{admin.address.port}"):
        assert admin.ask("/api/state", headers={"Host": host})[0] == 200
    assert admin.ask("/api/state", headers={"Host": "a:b:c"})[0] == 421


def test_events_go_on_over_tls_and_large_answers_come_whole(admin: Asker, authority: Authority) -> None:
    with admin.connect() as sock, authority.context().wrap_socket(sock, server_hostname=NAME) as secure:
        secure.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while heard.count(b"event: state") < 2:
            heard += secure.recv(65536)
    with admin.connect() as sock, authority.context().wrap_socket(sock, server_hostname=NAME) as secure:
        for _ in range(5):
            secure.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            got = b""
            while not got.endswith(b'{"status":"OK"}'):
                got += secure.recv(1000)
            assert got.count(b"HTTP/1.1 200 OK") == 2


def test_those_who_never_shake_hands_are_few_and_hold_up_nobody(admin: Asker) -> None:
    client_hello = hello()
    with contextlib.ExitStack() as crowd:
        silent = [crowd.enter_context(admin.connect()) for _ in range(3 * MAX_CONNECTIONS)]
        for number, sock in enumerate(silent):
            if number % 3:  # the others say nothing at all
                with contextlib.suppress(OSError):
                    sock.sendall(client_hello if number % 3 == 1 else client_hello[:50])
        began = time.monotonic()
        for _ in range(5):
            assert admin.ask("/health")[0] == 200
        assert time.monotonic() - began < 5.0 * time_factor()
        assert sum(is_closed(sock) for sock in silent[: 2 * MAX_CONNECTIONS]) >= 2 * MAX_CONNECTIONS - 10
        slow = crowd.enter_context(admin.connect())
        began = time.monotonic()
        for byte in client_hello:
            try:
                slow.sendall(bytes([byte]))
            except OSError:
                break
            time.sleep(0.01)
        assert is_closed(slow)
        assert IDLE_S * 0.9 < time.monotonic() - began < 4 * IDLE_S * time_factor()
        assert all(is_closed(sock) for sock in silent)


@pytest.mark.parametrize(
    "junk", [b"\0" * 100, b"\x16\x03\x01\xff\xff" + b"\1" * 70_000, b"\x16\x03\x01\0\5" + b"A" * 5]
)
def test_what_is_no_tls_costs_only_itself(admin: Asker, junk: bytes) -> None:
    with admin.connect() as sock:
        with contextlib.suppress(OSError):
            sock.sendall(junk)
        sock.settimeout(5.0 * time_factor())
        assert is_closed(sock)
    with admin.connect() as sock:
        sock.sendall(hello())
        sock.recv(65536)
        sock.sendall(b"\x17\x03\x03\x00\x20" + b"\7" * 32)  # a record that no key has made
        sock.settimeout(5.0 * time_factor())
        assert is_closed(sock)
    assert admin.ask("/health")[0] == 200


def test_a_certificate_that_is_renewed_is_shown_from_then_on_and_nobody_notices(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    shown = [server_context(*each.sign(NAME, "127.0.0.1", file=name)) for name, each in (("a", old), ("b", new))]
    with served(tls=lambda: shown[0], context=old.context()) as (before, _):
        after = Asker(str(before.address), new.context())
        with before.connect() as sock, old.context().wrap_socket(sock, server_hostname=NAME) as listening:
            listening.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert listening.recv(65536).startswith(b"HTTP/1.1 200")
            shown.reverse()
            assert after.ask("/health")[0] == 200
            with pytest.raises(ssl.SSLCertVerificationError):
                before.ask("/health")
            while b"event: state" not in listening.recv(65536):
                pass


def test_without_access_every_client_must_show_a_certificate_where_there_is_an_authority_for_them(
    authority: Authority,
) -> None:
    with secured(authority, ca=authority.ca) as nobody:
        known = Asker(str(nobody.address), authority.context(*authority.sign("web.example")))
        assert known.json("/api/state")["node"]
        for path in ("/health", "/api/state"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                nobody.ask(path)
        stranger = Authority(authority.directory, "another")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Asker(str(nobody.address), authority.context(*stranger.sign("stranger.example"))).ask("/health")


def test_a_certificate_says_who_asks_and_is_not_taken_for_that_of_another_connection(authority: Authority) -> None:
    secret = token.new()
    config = f"""
[access.operator]
certificate = ["ops.example", "other.example"]
token = "{token.hash_of(secret)}"
admin = true

[access.web]
certificate = "web.example"
send = ["*"]
"""
    with secured(authority, ca=authority.ca, access=access_of(config)) as nobody:

        def asks_as(name: str) -> Asker:
            return Asker(str(nobody.address), authority.context(*authority.sign(name)))

        known = asks_as("ops.example")
        for _ in range(5):
            assert known.ask("/api/state")[0] == 200
            assert nobody.ask("/api/state")[0] == 401
        assert nobody.ask("/api/state", headers=bearer(secret))[0] == 200
        assert asks_as("other.example").ask("/metrics")[0] == 200
        assert asks_as("web.example").ask("/api/state")[0] == 403
        assert asks_as("web.example").ask("/api/state", headers=bearer(secret))[0] == 200
        assert asks_as("nobody.example").ask("/api/state")[0] == 401


def hello() -> bytes:
    """Return what a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=NAME).do_handshake()
    return outgoing.read()


def test_one_that_says_no_more_is_closed(admin: Asker, authority: Authority) -> None:
    with admin.connect() as sock, authority.context().wrap_socket(sock, server_hostname=NAME) as secure:
        raw = secure.unwrap()  # returns once the other end has said its last, too
        assert is_closed(raw)
        raw.close()
    with admin.connect() as sock:
        sock.shutdown(socket.SHUT_WR)
        assert is_closed(sock)
