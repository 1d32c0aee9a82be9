"""Clients at the Unix socket of a node on this machine, of both colours."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import skywalker
from skywalker.clients.routes import DIRECT_AFTER_CALLS
from tests.clients.driving import Place, background
from tests.clients.scripted import Connection, ScriptedNode
from tests.clients.spying import SOON, Spy, meet
from tests.helpers import time_factor

MakePlace = Callable[..., Place]


@pytest.fixture
def path() -> Iterator[Path]:
    """Where a socket may be; that of tmp_path may be too long."""
    with tempfile.TemporaryDirectory(prefix="skywalker-") as directory:
        yield Path(directory, "door")


class UnixScriptedNode(ScriptedNode):
    """One that listens at a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen()
        return listener


def test_all_calls_go_over_one_connection(make_place: MakePlace, unix_node: str, spy: Spy, topic: str) -> None:
    junction = make_place(unix_node).join(name="local", ack=True)
    for number in range(DIRECT_AFTER_CALLS):
        meet(junction, [topic, number], "x" * 30_000)
    assert spy.right == 0  # nobody was asked who owns what
    assert junction.hello()["node"]


def test_a_socket_that_is_not_there_is_named(make_place: MakePlace, path: Path) -> None:
    with pytest.raises(skywalker.Unreachable, match=f"unix://{path}: no such file or directory"):
        make_place(f"unix://{path}").join(connect_timeout=0.2)


def test_a_token_that_was_told_to_this_machine_goes_to_no_other(make_place: MakePlace, path: Path) -> None:
    # Its node tells of a cluster; once that node is lost, the others are not asked over the network.
    with ScriptedNode() as elsewhere, UnixScriptedNode(path) as node:
        place = make_place(f"unix://{path}")
        joining = background(lambda: place.join(token="s3cret"))
        connection = node.next_connection()
        greet(connection, elsewhere.port)
        method, id = connection.read()[:2]
        while method != ":tokens":
            if method == ":nodes":
                told = [member(name, elsewhere.port) for name in ("n1", "n2")]
                connection.write([method, id, {"version": "v", "nodes": told, "more": False}])
            method, id = connection.read()[:2]
        connection.write([method, id, [1, 2, 3]])
        junction = joining.result(SOON * time_factor())
        call = background(lambda: junction.recv("t", timeout=SOON))
        while connection.read()[0] != ":recv!":
            pass
        connection.close()
        again = node.next_connection()
        greet(again, elsewhere.port)
        while (message := again.read())[0] != ":recv!":
            pass
        again.write([":recv!", message[1], "v"])
        assert call.result(SOON * time_factor()) == "v"
        assert elsewhere.no_connection_waits()


def greet(connection: Connection, port: int) -> None:
    method, id, options = connection.read()
    assert (method, options["token"]) == (":hello", "s3cret")
    told = {**member("n1", port), "worker": 0, "tokens": {0: [1]}, "node": "n1", "ring": "v", "extensions": []}
    connection.write([method, id, told])


def member(name: str, port: int) -> dict[str, object]:
    return {
        "id": name, "name": name, "address": "127.0.0.1", "port": port, "workers": 1, "steering": False,
        "tokens": [1 if name == "n1" else 2],
    }  # fmt: skip
