"""How a node is found: with scripted ones that answer late, in pieces, not at all, or that they will not do."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

from skywalker.clients.blocking import connection
from skywalker.errors import Draining, RemoteProtocolError, Unauthorized, Unreachable
from skywalker.pipeline.tables import finding
from skywalker.pipeline.tables.finding import Finder, Nodes
from tests.clients.scripted import PATIENCE_S, Connection, ScriptedNode, error, framed
from tests.helpers import eventually, time_factor

STEP_S = 0.02
GREETING = [":hello", None, {"extensions": ["hello", "ack"]}]
NEWS = framed([":ring", None, {"leaving": True}])


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    with ScriptedNode() as made:
        yield made


@contextlib.contextmanager
def finder(*nodes: ScriptedNode, needs_ack: bool = False) -> Iterator[Finder]:
    where = ",".join(node.address for node in nodes)
    with contextlib.closing(Finder(Nodes(where).settings(name="tests"), needs_ack=needs_ack)) as made:
        yield made


def step(finder: Finder) -> connection.Connection | None:
    return finder.advance(time.monotonic() + STEP_S)


def greeted(finder: Finder, node: ScriptedNode) -> Connection:
    """The connection on which a node was said hello to."""
    eventually(lambda: step(finder) or not node.no_connection_waits())
    connection = node.next_connection()
    assert connection.read() == [":hello", None, {"name": "tests", "ring": True}]
    return connection


def test_an_answer_may_come_in_pieces_and_what_follows_it_is_left_to_who_asked(node: ScriptedNode) -> None:
    with finder(node) as finds:
        connection = greeted(finds, node)
        answer = framed(GREETING)
        for at in range(len(answer) - 1):
            connection.write_bytes(answer[at : at + 1])
            assert step(finds) is None
        connection.write_bytes(answer[-1:] + NEWS)
        with contextlib.closing(finds.find(PATIENCE_S)) as found:
            assert finds.rest + (b"" if finds.rest else found.read(PATIENCE_S) or b"") == NEWS


def test_who_waits_for_an_answer_can_stop_at_any_time_and_goes_to_another_node_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finding, "HELLO_S", 0.5 * time_factor())
    with ScriptedNode() as one, ScriptedNode() as two, finder(one, two) as finds:
        eventually(lambda: step(finds) or not (one.no_connection_waits() and two.no_connection_waits()))
        silent, other = (two, one) if one.no_connection_waits() else (one, two)
        began = time.monotonic()
        assert step(finds) is None
        assert time.monotonic() < began + 0.4 * time_factor()
        answering = greeted(finds, other)
        assert finds.cause == f"the node at {silent.address} does not answer :hello"
        answering.write(GREETING)
        finds.find(PATIENCE_S).close()
        assert str(finds.address) == other.address


@pytest.mark.parametrize("answer", [error(Draining.code), {}])
def test_a_node_that_is_going_away_or_just_went_is_asked_again(node: ScriptedNode, answer: Any) -> None:
    with finder(node) as finds:
        connection = greeted(finds, node)
        if answer:
            connection.write([":hello", None, answer])
        else:
            connection.close()
        eventually(lambda: step(finds) or finds.cause)
        greeted(finds, node).write(GREETING)
        finds.find(PATIENCE_S).close()


def test_a_node_that_refuses_us_for_good_ends_it(node: ScriptedNode) -> None:
    with finder(node) as finds:
        greeted(finds, node).write([":hello", None, error(Unauthorized.code, "who are you?")])
        with pytest.raises(Unauthorized, match="who are you"):
            finds.find(PATIENCE_S)


def test_a_node_that_acknowledges_nothing_does_where_that_is_not_needed(node: ScriptedNode) -> None:
    for needs_ack in (False, True):
        with finder(node, needs_ack=needs_ack) as finds:
            greeted(finds, node).write([":hello", None, {"extensions": ["hello"]}])
            if needs_ack:
                with pytest.raises(RemoteProtocolError, match=f"{node.address} knows no acknowledgements"):
                    finds.find(PATIENCE_S)
            else:
                finds.find(PATIENCE_S).close()


@pytest.mark.parametrize("noise", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0", framed([1, 2, 3]), framed({}), NEWS])
def test_what_is_no_node_is_said_to_be_none(node: ScriptedNode, noise: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "HELLO_S", 0.2 * time_factor())
    with finder(node) as finds:
        greeted(finds, node).write_bytes(noise)
        eventually(lambda: step(finds) or finds.cause)
        assert "does not answer :hello" in finds.cause
        with pytest.raises(Unreachable, match=f"no node reachable at {node.address}: .* does not answer :hello"):
            finds.find(0.0)
