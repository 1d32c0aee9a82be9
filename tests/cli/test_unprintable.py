"""What others named, on a terminal: nothing of it moves the cursor, begins a line, turns one around or hides in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skywalker.cli import terminal
from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node
from skywalker.silk import blocking
from tests.cli.running import run, started
from tests.cli.told_cluster import told_cluster
from tests.helpers import eventually

EVIL = "a\x1b[2J\x07\x7f\x9b2J\r\n\u202eb\u200bc\u2028\u2066d\U000e0041"
"""Escapes of seven and of eight bits, line ends, and characters that turn text around or are not seen."""


def harmless(output: bytes) -> str:
    """Return what a command has printed; fail if a terminal would do something else than show it."""
    text = output.decode()
    assert [char for char in text if not char.isprintable() and char not in "\n\t"] == []
    return text


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5))
def test_json_on_a_terminal_is_printable_and_says_the_same(data: Any) -> None:
    for indent in (None, 2):
        line = terminal.json_line(data, indent=indent)
        assert json.loads(line) == data
        harmless(line)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_value_that_is_received(node: Node, junction: Client, topic: str, form: list[str]) -> None:
    sent = junction.begin("send", topic, {EVIL: EVIL}, timeout=30)
    ran = run("recv", *form, topic, node=node.address)
    printed = json.loads(harmless(ran.stdout))
    assert (printed["value"] if form else printed) == {EVIL: EVIL}
    assert sent.result() is True


def test_groups_that_wait_on_a_topic(node: Node, junction: Client, topic: str) -> None:
    waiting = junction.begin("take", topic, group=EVIL)
    for form in ([], ["--json"]):
        ran = run("topic", *form, topic, node=node.address)
        printed = json.loads(harmless(ran.stdout))
        assert (printed["value"] if form else printed)["takers"] == {EVIL: 1}
    assert junction.cancel(waiting)


def test_names_of_nodes() -> None:
    with told_cluster(2, names=[EVIL, "x" * 255]) as nodes:
        where = str(nodes[0].member.address)
        for command in (["ring"], ["ring", "--json"], ["route", "jobs"], ["route", "--json", "jobs"], ["doctor"]):
            harmless(run(*command, node=where).stdout)


@pytest.fixture
def silk_node() -> Iterator[blocking.Node]:
    with blocking.Node(name="<b>[red]x") as node:
        node.handle("echo", lambda data: EVIL)
        yield node


def test_replies_of_silk_nodes(silk_node: blocking.Node) -> None:
    where = silk_node.info.router
    for form in ([], ["--json"], ["--all"]):
        ran = run("silk", "request", "--join", where, *form, "echo")
        assert "\\u202e" in harmless(ran.stdout), ran.stderr
    harmless(run("silk", "members", where).stdout)


def test_messages_of_silk_nodes(silk_node: blocking.Node) -> None:
    with started("silk", "listen", "--join", silk_node.info.router, "--type", "news") as listener:
        [heard] = eventually(lambda: [each for each in silk_node.members.values() if "news" in each.messages])
        silk_node.tell(heard.id, "news", EVIL)
        assert listener.stdout is not None
        assert json.loads(harmless(listener.stdout.readline())) == EVIL
