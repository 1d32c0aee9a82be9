"""Who comes in by which door, what they may do there, and what one hears who may not."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from tests.authority import Authority
from tests.helpers import CLOCK, eventually, time_factor
from tests.simulation.stage import HERE
from tests.workers.pubsub_client import PubSubClient, publish, subscribe
from tests.workers.staged import Node, simulated
from tests.workers.wire_client import SECURE, TIMED_OUT, ConnectionEnded, WireClient, call, framed, refusal
from workers.access.refusals import SAY_EVERY_S
from workers.engine import sockets
from workers.stats.metrics import CLOSED, REFUSED

WEB, BOSS = token.new(), token.new()
GREETING_S = 0.5

TABLES = f"""
[access.web]
token = "{token.hash_of(WEB)}"
send = ["jobs/*"]
recv = ["done/*", 7]
subscribe = ["news"]

[access.boss]
token = "{token.hash_of(BOSS)}"
send = ["*"]
recv = ["*"]
subscribe = ["*"]
"""

Connect = Callable[..., WireClient]


@contextmanager
def node_with(tables: str, **settings: Any) -> Iterator[Node]:
    """Yield a node in virtual time."""
    with simulated(tables=tables, greeting_s=GREETING_S, **settings) as node:
        yield node


@contextmanager
def real_node_with(directory: Path, tables: str, **settings: Any) -> Iterator[Any]:
    """Yield a node that has what only a kernel gives: sockets of the machine, or TLS."""
    file = directory / "node.toml"
    file.write_text(tables)
    with skywalker.embedded(config_file=file, greeting_s=GREETING_S * time_factor(), **settings) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture
def node() -> Iterator[Node]:
    with node_with(TABLES, workers=2) as node:
        yield node


@pytest.fixture
def connect(node: Node) -> Iterator[Connect]:
    made: list[WireClient] = []

    def connect(secret: str | None = None) -> WireClient:
        made.append(WireClient.open(node.address))
        if secret is not None:
            assert made[-1].ask(":hello", "h", {"token": secret})["node"]
        return made[-1]

    yield connect
    for client in made:
        client.close()


def ends(client: WireClient) -> None:
    """The node closes the connection, whatever it says before."""
    with pytest.raises(ConnectionEnded):
        read_on(client)


def read_on(client: WireClient, say: Callable[[], None] = lambda: None) -> None:
    while True:
        say()
        client.read_frame()


def test_who_may_only_send_learns_how_many_wait_and_not_what_their_groups_are_called(
    node: Node, connect: Connect
) -> None:
    # So many connections and topics that each worker is asked about its own, and about those of the other.
    for number in range(4):
        web, boss, topic = connect(WEB), connect(BOSS), f"jobs/told-{number}"
        boss.call(":recv!", 1, 60_000, topic)
        for id, group in enumerate(("secret plan", "secret plan", ["other"], 7)):
            boss.call(":take!", f"take {id}", 60_000, topic, group)
        web.wait_until(topic, receivers=1, takers={None: 4}, senders=0)
        web.call(":topic", "raw", topic)
        assert b"secret plan" not in web.read_frame()
        assert connect(WEB).info(f"jobs/nobody-{number}")["takers"] == {}
        done = f"done/told-{number}"
        boss.call(":take!", "done", 60_000, done, "plan")
        web.wait_until(done, takers={"plan": 1})


class TestStrangers:
    @pytest.mark.parametrize(
        "elements",
        [
            (":take!", 1, 100, "done/1", "group"),
            (":ping", 1),
            (":nodes", 1),
            (":topic", 1, "jobs/1"),
            (":subscribe", 1, "news"),
            (":cancel", 1, 2),
            (":join", 1, "127.0.0.1:1"),
            (":nope", 1),
            (":hello", 1, {}),
            (":hello", 1, {"name": "me", "ack": True}),
        ],
        ids=lambda elements: elements[0],
    )
    def test_may_do_nothing_and_learn_nothing(self, connect: Connect, elements: tuple[Any, ...]) -> None:
        client = connect()
        client.call(*elements)
        error = client.refusal()
        assert (error.method, error.id, error.code, error.details) == (elements[0], 1, "unauthorized", {})

    @pytest.mark.parametrize("elements", [(":send!", 1, 100, "jobs/1", "value"), (":recv!", 1, 100, "done/1")])
    def test_hear_of_that_only_once_they_have_said_hello(self, connect: Connect, elements: tuple[Any, ...]) -> None:
        client = connect()
        assert client.ask(*elements) == TIMED_OUT
        client.call(":hello", 2, {})
        assert client.refusal().code == "unauthorized"
        client.call(*elements)
        assert client.refusal().code == "unauthorized"

    def test_hear_nothing_of_it_to_what_knows_no_timeout(self, connect: Connect) -> None:
        client = connect()
        client.call(":tokens", 1)
        client.wait_for_end()
        client = connect()
        client.call(":hello", 1, {})
        client.call(":tokens", 2)
        assert [client.refusal().code for _ in range(2)] == ["unauthorized"] * 2

    def test_with_a_wrong_token_they_are_sent_away_and_not_told_why(self, connect: Connect) -> None:
        said = set()
        for wrong in ("", "skw_", WEB[:-1], WEB + "x", token.hash_of(WEB), "x" * 3000):
            client = connect()
            client.call(":hello", 1, {"token": wrong})
            error = client.refusal()
            said.add((error.code, error.message, str(error.details)))
            client.wait_for_end()
        assert len(said) == 1
        assert next(iter(said))[0] == "unauthorized"

    @pytest.mark.parametrize(
        "says", [b"", b"\0", call(":ping", 1), framed(b"\xc1")], ids=["nothing", "half", "ping", "bad"]
    )
    def test_have_a_short_while(self, connect: Connect, says: bytes) -> None:
        client = connect()
        began = CLOCK.monotonic()
        client.write(says)
        ends(client)
        assert GREETING_S * 0.9 < (CLOCK.monotonic() - began) / time_factor() < GREETING_S + 0.5


class TestRights:
    def test_what_is_allowed_is_done(self, connect: Connect) -> None:
        web, boss = connect(WEB), connect(BOSS)
        boss.call(":take!", 1, 5000, "jobs/1", "pool")
        assert web.ask(":send!", 1, 5000, "jobs/1", "work") is True
        assert boss.reply()[2] == "work"
        web.call(":recv!", 2, 5000, 7)
        assert boss.ask(":send!", 2, 5000, 7, "seven") is True
        assert web.reply()[2] == "seven"

    @pytest.mark.parametrize(
        ("missing", "elements"),
        [
            ("send", (":send!", 1, 100, "done/1", "value")),
            ("send", (":send!", 1, 100, "jobs/1", "done/1", "value")),
            ("send", (":send!", 1, 100, b"jobs/1", "value")),
            ("send", (":will!", 1, 100, "done/1", "value")),
            ("recv", (":recv!", 1, 100, "jobs/1")),
            ("recv", (":recv!", 1, 100, 7.0)),
            ("recv", (":take!", 1, 100, "jobs/1", "done/1")),
            ("recv", (":topic", 1, "secret")),
            ("subscribe", (":subscribe", 1, "done/1")),
            ("node", (":join", 1, "127.0.0.1:1")),
            ("node", (":peer", 1, {"from": "x", "by": 0, "node": "y", "worker": 0, "version": 2})),
        ],
        ids=str,
    )
    def test_what_is_not_is_forbidden_and_said_what_was_missing(
        self, connect: Connect, missing: str, elements: tuple[Any, ...]
    ) -> None:
        web = connect(WEB)
        web.call(*elements)
        error = web.refusal()
        assert (error.code, error.details) == ("forbidden", {"missing": missing})
        assert web.ask(":ping", 2) is True

    def test_a_forbidden_call_meets_nobody(self, connect: Connect) -> None:
        web, boss = connect(WEB), connect(BOSS)
        boss.call(":recv!", 1, 300, "secret")
        web.call(":send!", 1, 100, "secret", "value")
        assert web.refusal().code == "forbidden"
        assert boss.reply()[2] == TIMED_OUT

    def test_who_one_is_can_change_and_what_waits_goes_on(self, connect: Connect) -> None:
        client, boss = connect(WEB), connect(BOSS)
        client.call(":recv!", 1, 10_000, "done/1")
        client.call(":hello", 2, {"token": BOSS})
        assert client.reply()[:2] == [":hello", 2]
        assert client.ask(":send!", 3, 0, "secret", "value") == TIMED_OUT
        assert boss.ask(":send!", 1, 5000, "done/1", "value") is True
        assert client.reply() == [":recv!", 1, "value"]

    def test_refusals_are_all_counted_and_logged_once_in_a_while_without_secrets(self) -> None:
        with node_with(TABLES) as node:
            began = CLOCK.monotonic()
            for _ in range(100):
                with WireClient.open(node.address) as client:
                    client.call(":hello", 1, {"token": "skw_wrong"})
                    assert client.refusal().code == "unauthorized"
                with PubSubClient.open(node.pubsub) as stranger:
                    stranger.wait_for_end()
            eventually(lambda: node.counted(REFUSED)["unauthorized"] == 200)
            eventually(lambda: node.counted(CLOSED)["unauthorized"] == 200)
            took = CLOCK.monotonic() - began
            lines = node.log.splitlines()
            for event in ("refused", "connection-refused"):
                assert 1 <= sum(f"event={event} " in line for line in lines) <= took / SAY_EVERY_S + 1
            assert "this node knows no such token" in node.log
            assert "skw_" not in node.log
            assert token.hash_of(WEB) not in node.log

    def test_those_without_a_line_of_their_own_are_counted_when_the_worker_ends(self) -> None:
        with simulated(tables=TABLES, harmed=True) as node:
            for _ in range(5):
                with PubSubClient.open(node.pubsub) as stranger:
                    stranger.wait_for_end()
            node.reload()
            lines = [line for line in node.log.splitlines() if "event=connection-refused " in line]
        assert len(lines) == 2
        assert "peer=" in lines[0]
        assert lines[1].endswith(" left_out=4")


class TestBounds:
    def test_who_becomes_somebody_else_takes_no_more_along_than_that_one_may_have(self) -> None:
        bounded = "\n".join(
            f'[access.{name}]\ntoken = "{token.hash_of(secret)}"\nrecv = ["*"]\nin_flight = 5\n'
            for name, secret in (("web", WEB), ("boss", BOSS))
        )
        with node_with(bounded) as node, WireClient.open(node.address) as other:
            other.ask(":hello", 1, {"token": BOSS})
            other.call(":recv!", 1, 60_000, "topic")
            other.wait_until("topic", receivers=1)
            with WireClient.open(node.address) as one:
                one.ask(":hello", 1, {"token": WEB})
                for id in range(5):
                    one.call(":recv!", id, 60_000, "topic")
                one.call(":hello", 9, {"token": BOSS})
                error = one.refusal()
                assert (error.code, error.details) == ("busy", {"limit": "access.in_flight", "value": 5})
                one.call(":cancel", 8, 0)
                assert {tuple(reply[:2]) for reply in one.replies(2)} == {(":recv!", 0), (":cancel", 8)}
                one.ask(":hello", 9, {"token": BOSS})
                other.call(":recv!", 2, 60_000, "topic")
                assert other.refusal().details == {"limit": "access.in_flight", "value": 5}

    def test_those_whom_nobody_knows_keep_nobody_from_saying_who_they_are(self) -> None:
        tables = TABLES + '[access.anyone]\nrecv = ["public"]\nconnections = 2\nrate = 5\n'
        with node_with(tables) as node:
            opened = [WireClient.open(node.address) for _ in range(2)]
            for client in opened:
                client.ask(":recv!", 1, 0, "public")
            opened[0].write(b"".join(call(":recv!", id, 0, "public") for id in range(20)))
            opened[0].replies(20)
            for secret in (WEB, BOSS):
                opened.append(WireClient.open(node.address))
                assert opened[-1].ask(":hello", 1, {"token": secret})["node"]
            assert opened[1].ask(":hello", 2, {"token": WEB})["node"], "known as somebody else before"
            opened.append(WireClient.open(node.address))
            # There is room again, and in a while they may ask.
            eventually(lambda: opened[-1].ask(":recv!", 1, 0, "public") == TIMED_OUT)
            for client in opened:
                client.close()

    def test_nor_do_they_ask_for_more_by_saying_nothing_again_and_again(self) -> None:
        with (
            node_with(TABLES + '[access.anyone]\nrecv = ["public"]\nrate = 5\n') as node,
            WireClient.open(node.address) as client,
        ):
            client.write(b"".join(call(":hello", id, {"name": "token"}) for id in range(20)))
            refused = [refusal(reply) for reply in client.replies(20) if "node" not in reply[2]]
            assert [error.id for error in refused] == [*range(6, 20)], "the first is for nothing"
            assert {error.details["limit"] for error in refused} == {"access.rate"}
            assert client.ask(":hello", 20, {"token": WEB})["node"], "known as somebody else at once"


def asked_as_nobody(path: Path) -> str:
    """Return what another user hears who asks at a Unix socket."""
    ask = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(bytes.fromhex('000892a53a70696e6701')); print(s.recv(200))"
    )
    return subprocess.run([sys.executable, "-c", ask, str(path)], capture_output=True, text=True, check=True).stdout


class TestDoors:
    def test_pubsub_is_for_those_whose_address_is_known(self) -> None:
        tables = f"""
            [access.near]
            network = "{HERE}/32"
            publish = ["mine/*"]
            subscribe = ["mine/*"]
        """
        with node_with(tables) as node:
            client = PubSubClient.open(node.pubsub)
            client.socket.sendall(subscribe(b"mine/1"))
            assert client.socket.recv(10) == b"\x04"
            client.socket.sendall(publish(b"mine/1", b"x") + publish(b"yours", b"y"))
            got = b""
            while data := client.socket.recv(100):
                got += data
            assert publish(b"mine/1", b"x") in got
            assert got.count(b"\x04") == 1, "the forbidden one is not acked"
            client.socket.close()
            eventually(lambda: "near may not publish on this topic" in node.log)

    def test_others_are_closed_there_at_once(self) -> None:
        with node_with(TABLES) as node:
            client = PubSubClient.open(node.pubsub)
            assert client.socket.recv(10) == b""
            client.socket.close()

    def test_a_unix_socket_tells_who_is_calling(self, tmp_path: Path) -> None:
        me = pwd.getpwuid(os.geteuid())
        tables = f"""
            [access.me]
            user = "{me.pw_name}"
            send = ["*"]
        """
        path = Path("/tmp") / f"skywalker-test-{os.getpid()}.sock"  # where another user gets to
        with real_node_with(tmp_path, tables, unix=str(path), workers=2) as node:
            for _ in range(5):
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(str(path))
                with WireClient(sock) as client:
                    assert client.ask(":send!", 1, 0, "topic", "value") == TIMED_OUT
            with WireClient.open((node.host, node.port)) as client:
                client.call(":ping", 1)
                assert client.refusal().code == "unauthorized"
            assert node.unix_address == f"unix://{path}"
            if os.geteuid() == 0:
                assert "unauthorized" in asked_as_nobody(path)
        assert not path.exists()

    def test_the_socket_of_a_node_that_was_killed_is_taken_over_and_no_other_file(self, tmp_path: Path) -> None:
        path = str(tmp_path / "node.sock")
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(path)
            old.listen()
            by_us = rf"cannot listen on .*: Address already in use by .+, process {os.getpid()} of user "
            with pytest.raises(sockets.AddressError, match=by_us):
                sockets.unix_listener(path, 1)
        with sockets.unix_listener(path, 1):
            assert Path(path).is_socket()
        Path(path).unlink()
        Path(path).write_text("precious")
        with pytest.raises(sockets.AddressError, match="in use by something that is not a socket"):
            sockets.unix_listener(path, 1)
        assert Path(path).read_text() == "precious"

    def test_a_certificate_tells_who_is_calling(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path)
        cert, key = authority.sign("127.0.0.1")
        tables = TABLES + '[access.shop]\ncertificate = "shop.example"\nsend = ["*"]\n'
        with real_node_with(tmp_path, tables, tls_cert=cert, tls_key=key, tls_ca=authority.ca) as node:
            address = (node.host, node.port)
            try:
                SECURE[address] = authority.context(*authority.sign("shop.example"))
                with WireClient.open(address) as client:
                    assert client.ask(":send!", 1, 0, "anything", "value") == TIMED_OUT
                SECURE[address] = authority.context(*authority.sign("other.example"))
                with WireClient.open(address) as client:
                    client.call(":ping", 1)
                    assert client.refusal().code == "unauthorized"
                SECURE[address] = authority.context()
                with WireClient.open(address) as client:
                    assert client.ask(":hello", 1, {"token": WEB})["node"]
            finally:
                SECURE.pop(address)
