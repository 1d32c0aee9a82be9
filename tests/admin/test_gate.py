"""Who may see the metrics of a node that limits access, and what the others get."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skywalker.access import token
from tests.admin.asking import Asker, access_of, node, served
from tests.helpers import eventually, time_factor
from workers.access.refusals import SAY_EVERY_S
from workers.agent.admin.transport import MAX_CONNECTIONS

ADMIN, OTHER = token.new(), token.new()
PATHS = ["/", "/metrics", "/api/state", "/api/topics", "/api/connections", "/api/ring", "/api/history", "/api/events"]
CONFIG = f"""
[access.operator]
token = "{token.hash_of(ADMIN)}"
admin = true

[access.web]
token = "{token.hash_of(OTHER)}"
send = ["*"]
"""


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def basic(user: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()}


@pytest.fixture(scope="module")
def there() -> Iterator[Asker]:
    with served(access=access_of(CONFIG)) as (asker, _):
        yield asker


@pytest.fixture
def admin(there: Asker) -> Asker:
    return there


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_shows_something_is_for_those_with_a_token_that_may(admin: Asker, path: str) -> None:
    for headers in ({}, bearer(token.new()), basic("admin", token.new())):
        status, found, body = admin.ask(path, headers=headers)
        assert (status, found["content-type"]) == (401, "application/json")
        assert found["www-authenticate"].startswith("Basic realm=")
        said = json.loads(body)
        assert (said["code"], said["missing"]) == ("unauthorized", "admin")
    status, found, body = admin.ask(path, headers=bearer(OTHER))
    assert status == 403
    assert "www-authenticate" not in found
    said = json.loads(body)
    assert (said["code"], said["missing"]) == ("forbidden", "admin")
    assert "web" in said["error"]
    if path != "/api/events":
        for headers in (
            bearer(ADMIN),
            basic("", ADMIN),
            basic("any name", ADMIN),
            {"Authorization": f"bEaRer {ADMIN}"},
        ):
            assert admin.ask(path, headers=headers)[0] == 200


def test_health_is_told_to_everybody_and_nothing_else_is(admin: Asker) -> None:
    assert admin.ask("/health", headers=bearer("wrong"))[0] == 200
    assert admin.ask("/ready")[0] == 503  # it has no worker
    for path in ("/health/", "/health/../api/state", "//health", "/api/state?/health", "/Health", "/nothing"):
        assert admin.ask(path)[0] == 401
    assert admin.ask("/nothing", headers=bearer(ADMIN))[0] == 404
    assert admin.ask("/api/state", "HEAD")[0] == 401


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Bearer x{ADMIN}",
        f"Bearer {ADMIN[:-1]}",
        f"Bearer {ADMIN} {ADMIN}",
        f"Bearer {token.hash_of(ADMIN)}",
        ADMIN,
        f"Token {ADMIN}",
        f"Basic {ADMIN}",
        "Basic " + base64.b64encode(ADMIN.encode()).decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:\xff").decode(),
        "Basic =",
        "Basic " + "A" * 60_000,
        "Bearer " + "ÿ" * 1000,
        "Bearer sha256:",
    ],
)
def test_what_holds_no_token_of_ours_is_refused_in_the_same_words(admin: Asker, header: str) -> None:
    status, _, body = admin.ask("/api/state", headers={"Authorization": header})
    assert status == 401
    assert json.loads(body)["error"] == "this node does not know that token"


def test_two_tokens_are_none(admin: Asker) -> None:
    with admin.connect() as sock:
        lines = "".join(f"Authorization: Bearer {secret}\r\n" for secret in (ADMIN, OTHER))
        sock.sendall(f"GET /api/state HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
        assert sock.recv(65536).startswith(b"HTTP/1.1 401")


def test_a_wrong_name_gets_no_chance_to_show_who_asks(admin: Asker) -> None:
    status, headers, _ = admin.ask("/api/state", headers={"Host": "evil.example", **bearer(ADMIN)})
    assert status == 421
    assert "www-authenticate" not in headers


def test_refusals_are_counted_and_the_log_has_one_line_a_second_and_no_secret() -> None:
    with served(access=access_of(CONFIG)) as (admin, log):
        wrong = token.new()
        began = time.monotonic()
        for _ in range(200):
            assert admin.ask("/api/state", headers=basic("user", wrong))[0] == 401
        admin.ask("/", headers=bearer(OTHER))
        took = time.monotonic() - began
        time.sleep(SAY_EVERY_S)
        admin.ask("/", headers=bearer(wrong))
        asker = Asker(str(admin.address), headers=bearer(ADMIN))
        assert asker.metric("skywalker_admin_refused_total", code="unauthorized") == 201
        assert asker.metric("skywalker_admin_refused_total", code="forbidden") == 1
        lines = [line for line in log().splitlines() if "event=admin-refused" in line]
        assert 2 <= len(lines) <= took / SAY_EVERY_S + 2
        left_out = sum(int(line.rpartition("left_out=")[2]) for line in lines if "left_out=" in line)
        assert len(lines) + left_out == 202
        shown = log() + json.dumps([asker.json("/api/state"), asker.json("/api/connections")])
        for secret in (ADMIN, OTHER, wrong, basic("user", wrong)["Authorization"][6:]):
            assert secret not in shown
        assert token.hash_of(ADMIN) not in shown


def test_a_crowd_that_guesses_holds_up_nobody_who_may(admin: Asker) -> None:
    request = f"GET /api/state HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token.new()}\r\n\r\n".encode()
    with contextlib.ExitStack() as crowd:
        socks = [crowd.enter_context(admin.connect()) for _ in range(MAX_CONNECTIONS - 4)]
        quickest = []
        for _ in range(10):
            for sock in socks:
                with contextlib.suppress(OSError):
                    sock.sendall(request)
            began = time.monotonic()
            assert admin.ask("/api/state", headers=bearer(ADMIN))[0] == 200
            quickest.append(time.monotonic() - began)
        assert sorted(quickest)[5] < 1.0 * time_factor()


def test_somebody_known_by_network_sees_it_and_a_wrong_token_is_wrong_all_the_same() -> None:
    config = '[access.here]\nnetwork = "127.0.0.0/8"\nadmin = true\n'
    with served(access=access_of(config)) as (admin, _):
        assert admin.ask("/api/state")[0] == 200
        assert admin.ask("/api/state", headers=bearer(token.new()))[0] == 401


def test_who_is_known_only_by_where_they_come_from_may_still_show_a_token() -> None:
    config = CONFIG + '[access.here]\nnetwork = "127.0.0.1"\nsend = ["*"]\n[access.anyone]\nrecv = ["*"]\n'
    with served(access=access_of(config)) as (admin, _):
        status, headers, _ = admin.ask("/")
        assert (status, headers["www-authenticate"][:6]) == (401, "Basic ")
        assert admin.ask("/", headers=basic("", ADMIN))[0] == 200


def test_anyone_may_see_it_where_that_is_said() -> None:
    with served(access=access_of("[access.anyone]\nadmin = true\n")) as (admin, _):
        assert admin.ask("/api/state")[0] == 200


def test_new_tokens_hold_after_a_reload_and_old_ones_no_more(tmp_path: Path) -> None:
    file = tmp_path / "skywalker.toml"
    file.write_text(CONFIG)
    with node(config_file=file) as (found, admin), admin.connect() as listening:
        request = f"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
        listening.sendall(request.encode())
        assert listening.recv(65536).startswith(b"HTTP/1.1 200")
        later = token.new()
        file.write_text(CONFIG.replace(token.hash_of(ADMIN), token.hash_of(later)))
        os.kill(found.pid, signal.SIGHUP)

        def is_new() -> bool:
            with contextlib.suppress(OSError):
                return admin.ask("/api/state", headers=bearer(later))[0] == 200
            return False

        eventually(is_new, within=15)
        assert admin.ask("/api/state", headers=bearer(ADMIN))[0] == 401

        def is_over() -> bool:
            try:
                return listening.recv(65536) == b""
            except ConnectionError:
                return True

        eventually(is_over, within=5)
