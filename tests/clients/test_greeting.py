"""Every client greets every node, so that its errors reach the program; and does without where that is in vain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skywalker
from skywalker.access import token
from skywalker.clients.calls import MUTE_TRIES
from tests.clients.driving import Driver, Place, background
from tests.clients.scripted import Connection, ScriptedNode
from tests.helpers import time_factor

SOON = 10.0

MakePlace = Callable[..., Place]


@pytest.fixture
def silent() -> Iterator[ScriptedNode]:
    """Return a node that answers nothing by itself."""
    with ScriptedNode(courtesies=False) as node:
        yield node


def answer(connection: Connection, method: str, result: Any) -> Any:
    """Answer the next call, which is to be this one; return it."""
    call = connection.read()
    assert call[0] == method
    connection.write([method, call[1], result])
    return call


def test_a_node_that_closes_on_the_greeting_is_soon_not_greeted_any_more(
    make_place: MakePlace, silent: ScriptedNode
) -> None:
    joining = background(lambda: make_place(silent.address).join())
    for _ in range(MUTE_TRIES):
        connection = silent.next_connection()
        assert connection.read()[0] == ":hello"
        connection.close()
    connection = silent.next_connection()
    answer(connection, ":tokens", [1])
    junction: Driver = joining.result(SOON * time_factor())
    for value in ("a", "b"):  # the second over a new connection
        call = background(lambda: junction.recv("t", timeout=SOON))
        answer(connection, ":recv!", value)
        assert call.result(SOON * time_factor()) == value
        connection.close()
        call = background(lambda: junction.send("t", "v", timeout=SOON))
        connection = silent.next_connection()  # it is tried once more
        assert connection.read()[0] == ":hello"
        connection.close()
        connection = silent.next_connection()
        answer(connection, ":send!", True)
        assert call.result(SOON * time_factor()) is True
    assert silent.no_connection_waits()


ANYONE = """
[access.anyone]
send = ["mine"]
recv = ["mine"]
"""
SOMEBODY = f"""
[access.web]
token = "{token.hash_of(token.new())}"
send = ["*"]
"""


@contextlib.contextmanager
def node_with(directory: Path, tables: str, **settings: Any) -> Iterator[str]:
    """Yield the address of a node that refuses much."""
    file = directory / "node.toml"
    file.write_text(tables)
    with skywalker.embedded(config_file=file, **settings) as node:
        yield node.address


def test_the_errors_of_a_node_reach_programs_that_give_but_its_address(make_place: MakePlace, tmp_path: Path) -> None:
    with node_with(tmp_path, ANYONE, waiting_bytes=10_000, max_plain_reply=100) as address:
        junction = make_place(address).join()
        refused: dict[type[skywalker.RequestError], Callable[[], Any]] = {
            skywalker.Forbidden: lambda: junction.send("theirs", 1, timeout=SOON),
            skywalker.BadTopic: lambda: junction.recv("t" * 5_000, timeout=SOON),
            skywalker.Busy: lambda: junction.send("mine", "x" * 20_000, timeout=SOON),
        }
        for error, ask in refused.items():
            with pytest.raises(error):
                ask()
        waits = junction.begin("recv", "mine", timeout=SOON)
        junction.topic("mine")
        assert junction.send("mine", "x" * 5_000, timeout=SOON), "a plain client would get less"
        assert len(waits.result()) == 5_000


def test_so_does_that_it_is_not_known_who_calls(make_place: MakePlace, tmp_path: Path) -> None:
    with node_with(tmp_path, SOMEBODY) as address, pytest.raises(skywalker.Unauthorized):
        make_place(address).join()
