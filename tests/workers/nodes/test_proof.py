"""Nodes that prove themselves at a worker's door, byte by byte, and whoever would like to be taken for one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from skywalker.access.proof import Challenge, Secrets
from skywalker.address import Address
from tests.helpers import eventually
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import WireClient, refusal

SECRET, WEB = token.new(), token.new()

TABLES = f"""
[access.nodes]
token = "{token.hash_of(SECRET)}"
node = true
[access.web]
token = "{token.hash_of(WEB)}"
send = ["*"]
recv = ["*"]
"""

OURS = Address("127.0.0.1", 1)


@pytest.fixture(params=["access", "no access"])
def limits_access(request: pytest.FixtureRequest) -> bool:
    """Whether a node does."""
    return bool(request.param == "access")


@pytest.fixture
def node(limits_access: bool) -> Iterator[Node]:
    """One that knows others by a secret."""
    tables = f'{TABLES if limits_access else ""}\n[cluster]\nsecret = "{SECRET}"\njoin = ""\n'
    with simulated(tables=tables) as node:
        yield node
        assert SECRET not in node.log


@pytest.fixture
def client(node: Node) -> Iterator[WireClient]:
    with WireClient.open(node.address) as client:
        yield client


def asked(node: Node, secret: str = SECRET, at: str = "") -> Challenge:
    """Return what another node asks that has dialled this one, or an address that it takes for it."""
    dialled = Address.parse(at) if at else Address(*node.address)
    return Challenge(Secrets(secret), "other", OURS, dialled, os.urandom(32))


def peer(node: str, **more: Any) -> dict[str, Any]:
    return {"from": "other", "by": 0, "node": node, "worker": 0, "version": 2, "life": "x", **more}


def test_both_prove_themselves_and_go_on_as_nodes(node: Node, client: WireClient) -> None:
    asks = asked(node)
    id, proof = asks.judge(client.ask(":challenge", 1, dict(asks.question)))
    assert client.ask(":proof", 2, proof) is True
    greeting = client.ask(":hello", 3, {})
    assert greeting["node"] == id
    assert client.ask(":peer", 4, peer(id))["node"] == id


def test_who_has_proved_to_be_one_node_does_not_go_on_as_another(node: Node, client: WireClient) -> None:
    asks = asked(node)
    id, proof = asks.judge(client.ask(":challenge", 1, dict(asks.question)))
    assert client.ask(":proof", 2, proof) is True
    client.call(":peer", 3, peer(id) | {"from": "somebody else"})
    assert client.refusal().code == "bad-frame"


@pytest.mark.parametrize("method", [":peer", ":join"])
@pytest.mark.parametrize("shows", ["nothing", "the secret", "the secret as a client", "a client's token"])
def test_whoever_has_not_is_taken_for_no_node(
    node: Node, client: WireClient, limits_access: bool, method: str, shows: str
) -> None:
    said = {"the secret as a client": SECRET, "a client's token": WEB}.get(shows)
    if said is not None:
        client.ask(":hello", 1, {"token": said})
    options = peer("", **({"token": SECRET} if shows == "the secret" else {}))
    client.call(method, 2, options if method == ":peer" else "127.0.0.1:1")
    error = client.refusal()
    is_known = said is not None or not limits_access
    assert error.code == ("forbidden" if is_known else "unauthorized")
    # A stranger may say no :join at all, and hears of it as of any other call.
    assert error.details == ({"missing": "node"} if is_known or method == ":peer" else {})


@pytest.mark.parametrize("wrong", [b"", b"x" * 32, b"x" * 33, 7, None, ["x"], {"x": 1}, True])
def test_a_wrong_proof_is_the_last_that_is_heard(node: Node, client: WireClient, wrong: Any) -> None:
    asks = asked(node)
    client.ask(":challenge", 1, dict(asks.question))
    client.call(":proof", 2, wrong)
    assert client.refusal().code == "unauthorized"
    client.wait_for_end()


def test_a_proof_is_good_for_one_connection_only(node: Node, client: WireClient) -> None:
    asks = asked(node)
    _, proof = asks.judge(client.ask(":challenge", 1, dict(asks.question)))
    with WireClient.open(node.address) as thief:
        thief.call(":challenge", 1, dict(asks.question))
        assert asks.judge(thief.reply()[2])[1] != proof
        thief.call(":proof", 2, proof)
        assert thief.refusal().code == "unauthorized"
        thief.wait_for_end()
    assert client.ask(":proof", 2, proof) is True


def test_nodes_prove_themselves_once_on_a_connection(node: Node, client: WireClient) -> None:
    client.ask(":challenge", 1, dict(asked(node).question))
    client.call(":challenge", 2, dict(asked(node).question))
    assert client.refusal().code == "bad-frame"


def test_why_it_is_taken_for_no_node_is_in_its_log(node: Node, client: WireClient) -> None:
    client.ask(":challenge", 1, dict(asked(node).question))
    client.call(":proof", 2, "it has no certificate\x1b[2J\nlevel=error forged=yes")
    client.wait_for_end()
    eventually(lambda: "event=taken-for-no-node" in node.log)
    [line] = [line for line in node.log.splitlines() if "event=taken-for-no-node" in line]
    assert "it has no certificate" in line
    assert "\x1b" not in line


def test_nodes_do_not_come_by_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "node.sock"
    file = tmp_path / "node.toml"
    file.write_text(f'unix = "{path}"\n[cluster]\nsecret = "{SECRET}"\nsecret_in_clear = true\n')
    with skywalker.embedded(config_file=file, workers=1) as node, socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(str(path))
        client = WireClient(sock)
        asks = Challenge(Secrets(SECRET), "other", OURS, Address(node.host, node.port), os.urandom(32))
        client.call(":challenge", 1, dict(asks.question))
        assert client.refusal().code == "bad-frame"
        assert "event=secret-in-clear" in node.log


@pytest.mark.parametrize("allowed", [True, False])
def test_the_secret_itself_counts_only_while_a_cluster_is_upgraded(allowed: bool) -> None:
    tables = f'{TABLES}\n[cluster]\nsecret = "{SECRET}"\nsecret_in_clear = {str(allowed).lower()}\n'
    with (
        simulated(tables=tables) as node,
        WireClient.open(node.address) as client,
        WireClient.open(node.address) as wrong,
    ):
        client.call(":peer", 1, peer("", token=SECRET))
        answer = client.reply()
        wrong.call(":peer", 1, peer("", token=WEB))
        assert wrong.refusal().details == {"missing": "node"}
        if allowed:
            assert "life" in answer[2]
        else:
            error = refusal(answer)
            assert error.details == {"missing": "node"}
            assert "secret_in_clear" in error.message
