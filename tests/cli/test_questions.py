"""`ping`, `hello`, `tokens` and `topic` against a real node."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from skywalker.cli.questions import _card
from skywalker.clients.blocking.client import Client
from skywalker.embedding import Node
from tests.cli.running import run


def test_ping_says_how_long_it_took(node: Node) -> None:
    ran = run("ping", node=node.address)
    assert ran.returncode == 0
    assert re.fullmatch(rf"{re.escape(node.address)} answered in [0-9]+\.[0-9]{{2}} ms\n", ran.stdout.decode())
    as_json = json.loads(run("ping", "--json", node=node.address).stdout)
    assert as_json["status"] == "answered"


def test_tokens_are_one_a_line_in_ascending_order(node: Node, junction: Client) -> None:
    printed = [int(line) for line in run("tokens", node=node.address).stdout.splitlines()]
    assert printed == sorted(junction.tokens())
    assert json.loads(run("tokens", "--json", node=node.address).stdout)["value"] == printed


def test_hello_is_a_line_for_each_thing_and_json_for_scripts(node: Node, junction: Client) -> None:
    told = junction.hello()
    ran = run("hello", node=node.address)
    lines = dict(line.split(None, 1) for line in ran.stdout.decode().splitlines())
    assert [*lines][:3] == ["name", "node", "address"]
    assert (lines["address"], lines["version"], lines["workers"]) == (node.address, told["version"], "2")
    assert lines["tokens"] == "32, see --json"
    assert "frame 65,535" in lines["limits"]
    assert "subscribe" in lines["extensions"].split(", ")
    printed = json.loads(run("hello", "--json", node=node.address).stdout)
    assert printed["status"] == "answered"
    assert printed["value"]["node"] == told["node"]
    assert printed["value"]["workers"] == 2


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats() | st.binary(),
    lambda each: st.lists(each) | st.dictionaries(st.text() | st.integers(), each),
    max_leaves=10,
)
KEYS = st.sampled_from(["name", "node", "address", "port", "worker", "tokens", "limits", "steering"])


@given(st.dictionaries(KEYS | st.text(), ANYTHING))
def test_whatever_a_node_says_of_itself_is_lines_that_steer_no_terminal(said: dict[str, object]) -> None:
    printed = _card(said).decode()
    assert all(line.isprintable() for line in printed.split("\n"))
    assert printed.count("\n") == max(len(said) - ({"address", "port"} <= said.keys()), 0)


def test_topic_tells_who_waits(node: Node, junction: Client, topic: str) -> None:
    waiting = junction.begin("take", topic, group="pool")
    printed = json.loads(run("topic", topic, node=node.address).stdout)
    assert printed["takers"] == {"pool": 1}
    assert printed["receivers"] == printed["senders"] == 0
    assert junction.cancel(waiting)


def test_topic_prints_whatever_groups_there_are(node: Node, junction: Client, topic: str) -> None:
    calls = [junction.begin("take", topic, group=group) for group in ([1], {"a": 2})]
    junction.ping()
    groups = [[[1], 1], [[["a", 2]], 1]]
    assert json.loads(run("topic", topic, node=node.address).stdout)["takers"] == {"$map": groups}
    assert json.loads(run("topic", topic, "--json", node=node.address).stdout)["value"]["takers"] == {"$map": groups}
    assert all(junction.cancel(call) for call in calls)


def test_the_node_is_named_by_option_before_variable(node: Node) -> None:
    assert run("ping", "--node", node.address, node="127.0.0.1:1").returncode == 0
