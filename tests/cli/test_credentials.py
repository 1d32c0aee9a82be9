"""How commands show who they are, and whom they trust: by files and variables, never on the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from skywalker.embedding import Node
from tests.admin.asking import Asker
from tests.authority import Authority
from tests.cli.running import run, started
from tests.cli.told_admin import told_admin
from tests.helpers import eventually

WEB, OPERATOR = token.new(), token.new()
CONFIG = f"""
[access.web]
token = "{token.hash_of(WEB)}"
send = ["jobs/*"]
recv = ["jobs/*"]

[access.operator]
token = "{token.hash_of(OPERATOR)}"
certificate = "ops.example"
admin = true
send = ["*"]
recv = ["*"]
publish = ["*"]
subscribe = ["*"]

[access.me]
user = {os.geteuid()}
send = ["*"]
recv = ["*"]
"""


class Place:
    """A node that speaks TLS and limits access, and files to show it."""

    def __init__(self, node: Node, authority: Authority) -> None:
        self.node = node
        self.at = f"skywalkers://{node.address}"
        self.admin = f"https://{node.admin_address}"
        self.ca = authority.ca
        self.cert, self.key = authority.sign("ops.example")
        self.unix = f"unix://{authority.directory / 'door'}"
        self.files = {WEB: authority.directory / "web", OPERATOR: authority.directory / "operator"}
        for secret, file in self.files.items():
            file.write_text(f"{secret}\n")

    def connect(self) -> skywalker.Client:
        """Return a client that may do all."""
        return skywalker.connect(self.unix)

    def trusting(self, *arguments: str, secret: str = OPERATOR) -> list[str]:
        """Return arguments with those that show the token and name the authority."""
        return [*arguments, "--tls-ca", self.ca, "--token-file", str(self.files[secret])]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("place")
    authority = Authority(directory)
    cert, key = authority.sign("127.0.0.1")
    (directory / "skywalker.toml").write_text(CONFIG)
    settings: dict[str, Any] = {"tls_cert": cert, "tls_key": key, "tls_ca": authority.ca}
    settings["unix"] = str(directory / "door")
    with skywalker.embedded(
        workers=2, admin=True, pubsub=True, config_file=directory / "skywalker.toml", **settings
    ) as node:
        place = Place(node, authority)
        eventually(lambda: run("report", place.admin, *place.trusting()).returncode == 0, within=15)
        yield place
        assert "Traceback" not in node.log
        assert not re.search("skw_", node.log)


def refusal(ran: subprocess.CompletedProcess[bytes], status: int) -> str:
    """Return the one line that a command says of why it failed."""
    assert (ran.returncode, ran.stdout) == (status, b"")
    [line] = ran.stderr.decode().splitlines()
    assert "skw_" not in line
    return line


def test_a_value_goes_from_hand_to_hand_by_tls_and_token(place: Place) -> None:
    with started("recv", "jobs/1", *place.trusting(secret=WEB), node=place.at) as receiver:
        sent = run("send", "jobs/1", '{"id": 1}', SKYWALKER_TOKEN=OPERATOR, SKYWALKER_TLS_CA=place.ca, node=place.at)
        assert (sent.returncode, sent.stderr) == (0, b"")
        assert receiver.communicate(timeout=20)[0] == b'{"id": 1}\n'


def test_with_an_authority_given_tls_needs_no_scheme_and_a_certificate_shows_who_it_is(place: Place) -> None:
    arguments = ["--node", place.node.address, "--tls-ca", place.ca, "--tls-cert", place.cert, "--tls-key", place.key]
    assert run("ping", *arguments).returncode == 0
    assert run("send", "x", "1", "--timeout", "0", *arguments).returncode == 3


def test_the_socket_of_this_machine_needs_neither_and_is_not_spoken_tls_with(place: Place) -> None:
    assert run("ping", node=place.unix).returncode == 0
    assert run("ping", node=place.unix, SKYWALKER_TLS_CA=place.ca).returncode == 0


def test_who_shows_nothing_or_what_is_nobodys_is_told_how_to_show_something(place: Place, tmp_path: Path) -> None:
    said = refusal(run("ping", "--tls-ca", place.ca, node=place.at), 5)
    assert "--token-file" in said
    assert "SKYWALKER_TOKEN" in said
    assert "--tls-cert" in said
    (tmp_path / "wrong").write_text(token.new())
    arguments = ["--tls-ca", place.ca, "--token-file", str(tmp_path / "wrong")]
    assert "--token-file" in refusal(run("send", "jobs/1", "1", *arguments, node=place.at), 5)
    ran = run("send", "jobs/1", "1", "--json", *arguments, node=place.at)
    assert (ran.returncode, ran.stderr) == (5, b"")
    said = json.loads(ran.stdout)
    assert (said["status"], said["code"]) == ("refused", "unauthorized")


def test_what_one_may_not_is_refused_with_what_is_missing(place: Place) -> None:
    for command in (["send", "other", "1"], ["recv", "other"]):
        said = refusal(run(*command, *place.trusting(secret=WEB), node=place.at), 5)
        assert "web may not" in said
        assert "[access]" in said
    ran = run("send", "other", "1", "--json", *place.trusting(secret=WEB), node=place.at)
    assert json.loads(ran.stdout)["code"] == "forbidden"
    ran = run("send", "other", "--lines", *place.trusting(secret=WEB), stdin=b"1\n2\n", node=place.at)
    assert ran.returncode == 5


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certified]:
    directory = tmp_path_factory.mktemp("certified")
    authority = Authority(directory)
    cert, key = authority.sign("127.0.0.1")
    with skywalker.embedded(
        workers=2, admin=True, pubsub=True, tls_cert=cert, tls_key=key, tls_ca=authority.ca
    ) as node:
        certified = Certified(node, authority)
        shown = ["--tls-ca", authority.ca, "--tls-cert", cert, "--tls-key", key]
        eventually(lambda: run("report", certified.commands[-1][1], *shown).returncode == 0, within=15)
        yield certified


class Certified:
    """A node that lets in who shows a certificate, and commands that talk to it."""

    def __init__(self, node: Node, authority: Authority) -> None:
        self.authority = authority
        self._asker = Asker(node.admin_address, authority.context(*authority.sign("watcher.example")))
        broker = ["--broker", f"skywalkers://{node.pubsub_address}", "--timeout", "20"]
        self.commands = (
            ["ping", "--node", f"skywalkers://{node.address}", "--timeout", "20"],
            ["send", "t", "1", "--node", f"skywalkers://{node.address}", "--timeout", "20"],
            ["publish", "t", "x", *broker],
            ["subscribe", "t", *broker],
            ["report", f"https://{node.admin_address}"],
        )

    def failed_handshakes(self) -> float:
        """Return how many connections never spoke TLS, at the doors of the workers."""
        return self._asker.metric("skywalker_handshakes_failed_total")


@pytest.mark.parametrize("number", range(5))
def test_all_commands_end_alike_and_at_once_where_certificates_do_not_fit(
    certified: Certified, tmp_path: Path, number: int
) -> None:
    command = certified.commands[number]
    stranger = Authority(tmp_path, "somebody else")
    cert, key = stranger.sign("client.example")
    trusting = ["--tls-ca", certified.authority.ca]
    before = certified.failed_handshakes()
    for shown, status, says in (
        ([], 4, "no authority that is trusted .*: name the file of that authority by --tls-ca$"),
        (["--tls-ca", stranger.ca], 4, "no authority that is trusted .*--tls-ca$"),
        (trusting, 5, "not let in .*: it wants a certificate: show one by --tls-cert and --tls-key$"),
        ([*trusting, "--tls-cert", cert, "--tls-key", key], 5, "not trust: show another by --tls-cert and --tls-key$"),
    ):
        said = refusal(run(*command, *shown), status)
        assert re.search(says, said), said
        assert not re.search("tls=|no node reachable|token", said), said
    assert certified.failed_handshakes() <= before + 2 * 4


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff\xfe", b"x" * 5000, b"skw_a\nskw_b"])
def test_a_file_without_a_token_is_refused_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    ran = run("ping", "--token-file", str(file))
    assert ran.returncode == 2
    assert f"{file} holds no token" in " ".join(ran.stderr.decode().split())
    assert b"skw_" not in ran.stderr
    assert b"two words" not in ran.stderr


def test_wrong_options_are_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for arguments, problem in (
        (["--token-file", str(tmp_path / "none")], "cannot be read"),
        (["--token", "skw_x"], "No such option"),
        (["--tls-key", "key.pem"], "--tls-cert"),
        (["--tls-ca", str(tmp_path / "none")], "cannot be read"),
        (["--tls-ca", str(tmp_path / "empty")], "no certificate of an authority"),
        (["--tls-cert", str(tmp_path / "empty")], "holds no certificate with its key"),
        (["--tls-cert", Authority(tmp_path).sign("a.example")[0]], "holds no key: name the file of its key"),
    ):
        ran = run("ping", *arguments, node="127.0.0.1:1")
        assert ran.returncode == 2, ran
        assert problem in " ".join(ran.stderr.decode().split())
        assert b"skw_x" not in ran.stderr


def test_pubsub_goes_by_tls_and_knows_no_token(place: Place) -> None:
    shown = ["--tls-ca", place.ca, "--tls-cert", place.cert, "--tls-key", place.key]
    broker = f"skywalkers://{place.node.pubsub_address}"
    with started("subscribe", "news", *shown, "--broker", broker) as subscriber, place.connect() as client:
        eventually(lambda: client.topic("news")["subscribers"] == 1, within=10)
        ran = run("publish", "news", "it", *shown, "--broker", place.node.pubsub_address)
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert subscriber.communicate(timeout=20)[0] == b"it\n"
    assert run("publish", "news", "it", "--token-file", "x").returncode == 2
    said = refusal(run("publish", "news", "it", "--tls-ca", place.ca, "--broker", broker, "--timeout", "20"), 5)
    assert "acknowledges nothing" in said
    assert "--tls-cert" in said


def test_the_ring_is_asked_of_all_nodes_by_who_we_are(place: Place) -> None:
    ran = run("ring", "--json", *place.trusting(), node=place.at)
    assert ran.returncode == 0, ran
    assert json.loads(ran.stdout)["value"]["agreed"] is True
    assert run("route", "jobs/1", *place.trusting(), node=place.at).returncode == 0


def test_a_report_is_for_those_who_may_have_it(place: Place) -> None:
    ran = run("report", place.admin, *place.trusting())
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"skw_" not in ran.stdout
    assert run("report", place.node.admin_address, "--cluster", *place.trusting()).returncode == 0
    assert "lacks admin" in refusal(run("report", place.admin, *place.trusting(secret=WEB)), 5)
    assert "--token-file" in refusal(run("report", place.admin, "--tls-ca", place.ca), 5)
    assert "--token-file" in refusal(run("report", place.admin, "--cluster", "--tls-ca", place.ca), 5)
    assert "--tls-ca" in refusal(run("report", place.admin, SKYWALKER_TOKEN=OPERATOR), 4)
    ran = run("report", place.admin, "--json", "--tls-ca", place.ca)
    assert (ran.returncode, json.loads(ran.stdout)["code"]) == (5, "unauthorized")
    assert "https://" in refusal(run("report", place.node.admin_address), 4)
    with told_admin() as plain:
        assert "speaks no TLS" in refusal(run("report", f"https://{plain.address}"), 4)
        assert run("report", f"http://{plain.address}/", "--tls-ca", place.ca).returncode == 0
