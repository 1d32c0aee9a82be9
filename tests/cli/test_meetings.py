"""One value by `send`, `recv` and `take`, and with which status each ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from skywalker.cli.credentials import Credentials
from skywalker.cli.options import Asked
from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node
from tests.cli.running import SKYWALKER, end, run, started, started_anew
from tests.helpers import eventually

Waits = Callable[..., None]


def test_a_value_goes_from_send_to_recv(node: Node, topic: str, someone_waits: Waits) -> None:
    with started("recv", topic, node=node.address) as receiver:
        someone_waits(receivers=1)
        sender = run("send", topic, '{"id": [1, 2.5, null]}', node=node.address)
        assert (sender.returncode, sender.stdout, sender.stderr) == (0, b"", b"")
        assert receiver.communicate(timeout=10) == (b'{"id": [1, 2.5, null]}\n', b"")
        assert end(receiver) == 0


def test_of_a_group_of_takers_one_prints_the_value(node: Node, junction: Client, topic: str) -> None:
    with (
        started("take", topic, "--group", "pool", node=node.address) as one,
        started("take", topic, "--group", "pool", node=node.address) as other,
    ):
        eventually(lambda: junction.topic(topic)["takers"] == {"pool": 2}, within=10.0)
        for value in ("1", "2"):
            assert run("send", topic, value, node=node.address).returncode == 0
        assert {one.communicate(timeout=10)[0], other.communicate(timeout=10)[0]} == {b"1\n", b"2\n"}


def test_a_value_is_read_from_standard_input(node: Node, topic: str, junction: Client) -> None:
    for arguments in ([topic], [topic, "-"]):
        waiting = junction.begin("recv", topic)
        assert run("send", *arguments, stdin=b'{"a":\n 1}\n', node=node.address).returncode == 0
        assert waiting.result() == {"a": 1}


def test_raw_bytes_arrive_byte_for_byte(node: Node, topic: str, someone_waits: Waits) -> None:
    data = bytes(range(256)) * 200
    with started("recv", topic, "--raw", node=node.address) as receiver:
        someone_waits(receivers=1)
        assert run("send", topic, "--raw", stdin=data, node=node.address).returncode == 0
        assert receiver.communicate(timeout=10)[0] == data


def test_messagepack_goes_in_and_out(node: Node, junction: Client, someone_waits: Waits) -> None:
    with started("recv", "--msgpack", "c3", node=node.address) as receiver:  # the topic `true`
        eventually(lambda: junction.topic(True)["receivers"] == 1, within=10.0)
        assert run("send", "--msgpack", "c3", "93010203", node=node.address).returncode == 0
        assert receiver.communicate(timeout=10)[0] == b"\x93\x01\x02\x03"


@pytest.mark.parametrize("command", [["send", "nobody", "1"], ["recv", "nobody"], ["take", "nobody", "--group", "g"]])
def test_nobody_there_is_status_3_after_the_timeout(node: Node, command: list[str]) -> None:
    ran = run(*command, "--timeout", "100ms", node=node.address)
    assert ran.returncode == 3
    assert ran.stdout == b""
    assert ran.stderr.decode().startswith("skywalker: nobody came to topic 'nobody' within 0.1 s")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_value_that_may_have_been_taken_is_status_9(node: Node, topic: str, as_json: list[str]) -> None:
    with node.connect(ack=True) as listener:
        listener.begin("recv", topic)  # and nobody looks whether something has come for it, so nothing is acknowledged
        ran = run("send", topic, "1", "--timeout", "1", *as_json, node=node.address)
    assert ran.returncode == 9
    if as_json:
        told = json.loads(ran.stdout)
        assert (told["status"], told["code"]) == ("unknown-outcome", "unknown-outcome")
        assert told["message"].startswith("it is not known whether somebody took the value")
    else:
        assert ran.stderr.decode().startswith("skywalker: it is not known whether somebody took the value: ")


def test_a_timeout_of_nothing_asks_whether_anyone_is_there(node: Node, topic: str, someone_waits: Waits) -> None:
    assert run("send", topic, "1", "--timeout", "0", node=node.address).returncode == 3
    with started("recv", topic, node=node.address) as receiver:
        someone_waits(receivers=1)
        assert run("send", topic, "1", "--timeout", "0", node=node.address).returncode == 0
        assert end(receiver) == 0


def test_no_node_is_status_4_and_names_it() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{held.getsockname()[1]}"
        ran = run("send", "jobs", "1", "--timeout", "200ms", node=address)
        assert ran.returncode == 4
        assert address in ran.stderr.decode()
        as_json = run("ping", "--timeout", "200ms", "--json", node=address)
        assert as_json.returncode == 4
        assert json.loads(as_json.stdout)["status"] == "unreachable"
        assert as_json.stderr == b""


def test_what_is_refused_is_status_5_and_says_why(node: Node, topic: str) -> None:
    too_large = run("send", topic, "--raw", stdin=b"x" * 70_000, node=node.address)
    assert too_large.returncode == 5
    assert b"65535" in too_large.stderr
    bad_topic = run("recv", "x" * 5_000, "--json", node=node.address)
    assert bad_topic.returncode == 5
    assert json.loads(bad_topic.stdout).items() >= {"status": "refused", "code": "bad-topic"}.items()


@pytest.mark.parametrize(
    "arguments",
    [
        ["send"],
        ["send", "t", "{"],
        ["send", "t", "1", "--timeout", "soon"],
        ["send", "t", "1", "--raw", "--msgpack"],
        ["send", "t", "1", "--lines"],
        ["send", "t", "--msgpack", "zz"],
        ["send", "t", "1", "--node", "host:99999"],
        ["recv", "t", "--count", "3"],
        ["frobnicate"],
    ],
    ids=" ".join,
)
def test_a_mistake_is_status_2_and_nothing_on_standard_output(node: Node, arguments: list[str]) -> None:
    variables = {} if "--node" in arguments else {"node": node.address}
    ran = run(*arguments, **variables)
    assert ran.returncode == 2
    assert ran.stdout == b""
    assert ran.stderr


def test_json_gives_a_script_one_line(node: Node, topic: str, someone_waits: Waits) -> None:
    with started("recv", topic, "--json", node=node.address) as receiver:
        someone_waits(receivers=1)
        sent = json.loads(run("send", topic, '{"a": 1}', "--json", node=node.address).stdout)
        got = json.loads(receiver.communicate(timeout=10)[0])
    assert sent.keys() == {"status", "ms"}
    assert got.items() >= {"status": "delivered", "value": {"a": 1}}.items()
    assert min(sent["ms"], got["ms"]) >= 0
    late = run("recv", topic, "--json", "--timeout", "1", node=node.address)
    assert late.returncode == 3
    assert json.loads(late.stdout)["status"] == "timed-out"


class SlowToConnect(Asked):
    """Takes longer to connect than any call here does."""

    def connect(self, where: str, **options: Any) -> Client:
        time.sleep(TO_CONNECT_S)
        return super().connect(where, **options)


TO_CONNECT_S = 1.0


def test_how_long_a_call_took_is_not_how_long_it_took_to_connect(
    node: Node, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = SlowToConnect(None, True, node.address, "current", Credentials())
    with pytest.raises(click.exceptions.Exit), asked.junction() as junction:
        junction.recv(topic, timeout=0)
    assert json.loads(capfd.readouterr().out)["ms"] < TO_CONNECT_S * 1000


def test_the_first_dialect_meets_the_current_one(node: Node, topic: str, someone_waits: Waits) -> None:
    with started("recv", topic, "--dialect", "first", node=node.address) as receiver:
        someone_waits(receivers=1)
        assert run("send", topic, "1", node=node.address).returncode == 0
        assert receiver.communicate(timeout=10)[0] == b"1\n"
    assert run("recv", topic, "--dialect", "first", "--timeout", "50ms", node=node.address).returncode == 3


def test_an_acknowledged_recv_prints_the_value(node: Node, topic: str, junction: Client) -> None:
    call = junction.begin("send", topic, "x")
    assert run("recv", topic, "--ack", node=node.address).stdout == b'"x"\n'
    assert call.result() is True


@pytest.mark.parametrize("command", [["recv"], ["recv", "--lines"], ["take", "--group", "g"]])
def test_ctrl_c_is_status_130_without_a_word_and_cancels_the_call(
    node: Node, topic: str, junction: Client, command: list[str]
) -> None:
    def waiting() -> bool:
        now = junction.topic(topic)
        return bool(now["receivers"] or now["takers"])

    with started(*command, topic, node=node.address) as receiver:
        eventually(waiting, within=10.0)
        receiver.send_signal(signal.SIGINT)
        out, err = receiver.communicate(timeout=10)
        assert (receiver.returncode, out, err.strip()) == (130, b"", b"")
        eventually(lambda: not waiting())


def test_a_closed_or_full_standard_output_is_told_in_one_line(node: Node, topic: str, junction: Client) -> None:
    with Path("/dev/full").open("wb") as full:
        call = junction.begin("send", topic, 1)
        with started_anew("recv", topic, node=node.address, pipes={"stdout": full}) as receiver:
            assert call.result() is True
            assert (
                receiver.communicate(timeout=10)[1].decode().startswith("skywalker: cannot write to standard output:")
            )
            assert receiver.returncode == 1
    call = junction.begin("send", topic, 1)
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *_recv(topic, node)], stderr=subprocess.PIPE, timeout=20, check=False
    )
    assert call.result() is True
    assert closed.returncode == 1
    assert closed.stderr.decode().startswith("skywalker: cannot write to standard output:")


def _recv(topic: str, node: Node) -> list[str]:
    return [SKYWALKER, "recv", topic, "--node", node.address]
