"""`publish` and `subscribe`: what goes in comes out, and with which status each ends."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from skywalker import pubsub
from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node, embedded
from tests.cli.running import end, run, started
from tests.clients.scripted import ScriptedNode
from tests.helpers import eventually, time_factor

Listens = Callable[..., None]


@pytest.fixture(scope="module")
def broker_node() -> Iterator[Node]:
    """A node with two workers that speaks pub/sub too."""
    with embedded(workers=2, pubsub=True) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture
def at(broker_node: Node) -> tuple[str, str]:
    """The option that names the node."""
    return "--broker", broker_node.pubsub_address


@pytest.fixture
def someone_listens(broker_node: Node, topic: str) -> Iterator[Listens]:
    """Return once as many as said are subscribed to the test's topic."""
    with broker_node.connect() as junction:
        yield lambda count=1, on=topic: wait_for_subscribers(junction, on, count)


def wait_for_subscribers(junction: Client, topic: str, count: int) -> None:
    eventually(lambda: junction.topic(topic)["subscribers"] == count, within=10.0)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses, short enough for pub/sub."""
    return request.node.name[:255]


def test_a_message_goes_from_publish_to_every_subscribe(
    at: tuple[str, str], topic: str, someone_listens: Listens
) -> None:
    with started("subscribe", topic, *at) as one, started("subscribe", topic, "other", *at) as other:
        someone_listens(2)
        ran = run("publish", topic, "It's broke.", *at)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        for each in (one, other):
            assert each.communicate(timeout=10) == (b"It's broke.\n", b"")
            assert end(each) == 0


def test_a_payload_is_read_from_standard_input_byte_for_byte(
    at: tuple[str, str], topic: str, someone_listens: Listens
) -> None:
    data = bytes(range(256)) * 200 + b"\n"
    for arguments in ([topic], [topic, "-"]):
        with started("subscribe", topic, "--raw", *at) as subscriber:
            someone_listens()
            assert run("publish", *arguments, *at, stdin=data).returncode == 0
            assert subscriber.communicate(timeout=10)[0] == data


def test_an_empty_payload_and_a_newline_are_printed_as_one_line_each(
    at: tuple[str, str], topic: str, someone_listens: Listens
) -> None:
    with started("subscribe", topic, "--lines", "--count", "3", *at) as subscriber:
        someone_listens()
        for payload in (b"", b"a\n", b"b"):
            assert run("publish", topic, *at, stdin=payload).returncode == 0
        assert subscriber.communicate(timeout=10)[0] == b"\na\nb\n"


def test_a_line_that_is_too_long_ends_the_stream_or_not(at: tuple[str, str], topic: str) -> None:
    lines = b"1\n" + b"x" * 65_536 + b"\n3\n"
    ran = run("publish", topic, "--lines", *at, stdin=lines)
    assert ran.returncode == 2
    assert ran.stderr.decode().startswith("skywalker: line 2: payload of 65536 bytes, limit of pub/sub is 65535")
    ran = run("publish", topic, "--lines", "--keep-going", "--json", *at, stdin=lines)
    assert ran.returncode == 2
    assert [json.loads(line)["status"] for line in ran.stdout.splitlines()] == ["published", "not-sent", "published"]


def test_the_output_for_scripts_has_text_or_base64_and_hints_where_asked(
    at: tuple[str, str], topic: str, someone_listens: Listens
) -> None:
    with (
        started("subscribe", topic, "--lines", "--count", "3", "--json", *at) as plain,
        started("subscribe", topic, "--lines", "--count", "3", "--json", "--typed", *at) as typed,
    ):
        someone_listens(2)
        ran = run("publish", topic, "ä" * 100, "--hint", "7", "--compress", "--json", *at)
        assert json.loads(ran.stdout)["status"] == "published"
        assert run("publish", topic, "--json", *at, stdin=b"\xff\n").returncode == 0
        assert run("publish", topic, "", *at).returncode == 0
        expected = [
            {"status": "delivered", "topic": topic, "payload": "ä" * 100, "size": 200},
            {"status": "delivered", "topic": topic, "base64": base64.b64encode(b"\xff\n").decode(), "size": 2},
            {"status": "delivered", "topic": topic, "payload": "", "size": 0},
        ]
        hints = [{"hint": 7}, {"hint": 0}, {"hint": 0}]
        for process, extras in ((plain, [{}] * 3), (typed, hints)):
            printed = [json.loads(line) for line in process.communicate(timeout=10)[0].splitlines()]
            assert all(line.pop("ms") >= 0 for line in printed)
            assert printed == [line | extra for line, extra in zip(expected, extras, strict=True)]


def test_nothing_published_is_status_3_after_the_timeout(at: tuple[str, str], topic: str) -> None:
    for options in ([], ["--lines"]):
        ran = run("subscribe", topic, "--timeout", "100ms", *options, *at)
        assert (ran.returncode, ran.stdout) == (3, b"")
        assert ran.stderr.decode().startswith("skywalker: no message came from 127.0.0.1:")
    ran = run("subscribe", topic, "--timeout", "100ms", "--json", *at)
    assert (ran.returncode, ran.stderr) == (3, b"")
    assert json.loads(ran.stdout)["status"] == "timed-out"


@pytest.mark.parametrize("command", [["publish", "t", "1"], ["subscribe", "t"], ["subscribe", "t", "--lines"]])
def test_a_node_that_never_acknowledges_is_status_3_after_the_timeout(command: list[str]) -> None:
    with ScriptedNode(courtesies=False) as node:
        started_at = time.monotonic()
        ran = run(*command, "--timeout", "200ms", "--broker", node.address)
        assert time.monotonic() - started_at < 5 * time_factor()
        assert (ran.returncode, ran.stdout) == (3, b"")
        assert f"{node.address} did not acknowledge the {command[0]} to 't' within 0.2 s" in ran.stderr.decode()


@pytest.mark.parametrize("command", [["publish", "t", "1"], ["subscribe", "t"]])
def test_no_node_is_status_4_and_names_every_address(command: list[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{held.getsockname()[1]}"
        ran = run(*command, "--timeout", "200ms", "--broker", f"{address},127.0.0.1:1")
        assert ran.returncode == 4
        assert f"{address}: connection refused" in ran.stderr.decode()
        assert "127.0.0.1:1: connection refused" in ran.stderr.decode()
        ran = run(*command, "--timeout", "200ms", "--broker", address, "--json")
        assert (ran.returncode, ran.stderr) == (4, b"")
        assert json.loads(ran.stdout)["status"] == "unreachable"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["publish", "t", "1", "--lines"], "not from PAYLOAD"),
        (["publish", "t", "1", "--hint", "256"], "256"),
        (["publish", "t" * 256, "1"], "topic of 256 bytes"),
        (["publish", "t", "1", "--broker", "a:b"], "host:port, such as 127.0.0.1:61626"),
        (["subscribe"], "TOPIC"),
        (["subscribe", "t" * 256], "topic of 256 bytes"),
        (["subscribe", "t", "--count", "2"], "--count goes with --lines"),
        (["subscribe", "t", "--typed"], "--typed goes with --json"),
        (["subscribe", "t", "--raw", "--json"], "exclude each other"),
    ],
)
def test_wrong_usage_is_status_2_and_says_why(broker_node: Node, command: list[str], told: str) -> None:
    ran = run(*command, SKYWALKER_BROKER=broker_node.pubsub_address)
    assert ran.returncode == 2
    assert told in ran.stderr.decode()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_subscriber_whose_worker_dies_says_so_and_goes_on(topic: str, as_json: bool) -> None:
    options = ["--json"] if as_json else []
    with (
        embedded(workers=1, pubsub=True) as node,
        started("subscribe", topic, "--lines", *options, "--broker", node.pubsub_address) as subscriber,
        pubsub.connect(node.pubsub_address) as broker,
    ):
        assert subscriber.stdout is not None
        assert subscriber.stderr is not None
        with node.connect() as junction:
            wait_for_subscribers(junction, topic, 1)
            os.kill(node.worker_pids()[0], signal.SIGKILL)
            if as_json:
                gap = json.loads(subscriber.stdout.readline())
                assert gap["status"] == "gap"
                assert "listening again" in gap["message"]
            else:
                assert b"was lost" in subscriber.stderr.readline()
                assert b"listening again" in subscriber.stderr.readline()
            broker.publish(topic, b"after")
            assert b"after" in subscriber.stdout.readline()
        subscriber.send_signal(signal.SIGINT)
        assert end(subscriber) == 130
        assert subscriber.stderr.read().strip() == b""


def test_a_reader_that_has_enough_ends_a_subscriber_by_sigpipe(
    broker_node: Node, at: tuple[str, str], topic: str, someone_listens: Listens
) -> None:
    with (
        started("subscribe", topic, "--lines", *at) as subscriber,
        pubsub.connect(broker_node.pubsub_address) as broker,
    ):
        assert subscriber.stdout is not None
        someone_listens()
        subscriber.stdout.close()
        broker.publish(topic, b"1")
        assert end(subscriber) == -signal.SIGPIPE
